"""The defaults of the service's address and the caller's key: the environment, or else the local
stack."""

import os

import httpx

from duewheel.auth import BearerKey
from duewheel.version import __version__

URL = "DUEWHEEL_URL"
KEY = "DUEWHEEL_KEY"
LOCAL_STACK = "http://127.0.0.1:8080"
USER_AGENT = f"duewheel-python/{__version__}"


def base_url(url: str | None) -> str:
    chosen = (url or os.environ.get(URL) or LOCAL_STACK).rstrip("/")
    if not chosen.startswith(("http://", "https://")):
        raise ValueError(f"{chosen!r} is no address: it begins with https:// or http://")
    return chosen


def auth_or_key(auth: httpx.Auth | None) -> httpx.Auth | None:
    key = os.environ.get(KEY)
    return auth or (BearerKey(key) if key else None)
