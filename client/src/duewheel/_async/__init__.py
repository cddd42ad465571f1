"""The calls. Written here, async; `_sync` is made of it by `client/make_sync.py`."""
