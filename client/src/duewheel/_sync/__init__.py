"""The calls without await. Made of `_async` by `client/make_sync.py`."""
