"""The calls, async. `client/make_sync.py` generates `_sync` from this package."""
