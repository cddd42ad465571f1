"""Admission to the proxy. An admitted browser acts with the credentials of the user who started it.

Invariant: a pass is given once, for the token that only the starter's terminal has shown. Nothing
here is logged, and nothing of it is in an answer but the cookie.
"""

import hmac
import secrets
from email.message import Message
from threading import Lock

HOST = "127.0.0.1"
HOST_NAMES = (HOST, "localhost")
HTTP_PORT = 80  # browsers leave it out


class Entrance:
    def __init__(self, port: int) -> None:
        ending = "" if port == HTTP_PORT else f":{port}"
        self._hosts = tuple(name + ending for name in HOST_NAMES)
        self._cookie = f"duewheel_console_{port}"  # cookies know no ports: two proxies, two names
        self._token = secrets.token_urlsafe(32)
        self._pass = secrets.token_urlsafe(32)
        self._is_token_good = True
        self._lock = Lock()

    @property
    def address(self) -> str:
        """Opens once."""
        return f"http://{self._hosts[0]}/?token={self._token}"

    @property
    def cookie(self) -> str:
        return f"{self._cookie}={self._pass}; Path=/; HttpOnly; SameSite=Strict"

    def takes(self, token: str) -> bool:
        """Accept the token once; a second use may be by another user who has seen it."""
        with self._lock:
            is_taken = self._is_token_good and _is_same(token, self._token)
            self._is_token_good = self._is_token_good and not is_taken
        return is_taken

    def has_pass(self, headers: Message) -> bool:
        pairs = (each.strip().partition("=") for each in _all(headers, "cookie").split(";"))
        return any(name == self._cookie and _is_same(text, self._pass) for name, _, text in pairs)

    def is_own_host(self, headers: Message) -> bool:
        """A name that was made to lead here is another site's, to the browser its own."""
        return _all(headers, "host") in self._hosts

    def is_same_origin(self, headers: Message) -> bool:
        """Asked by a page of this very origin: browsers say so in one header, all but old ones in
        both. Under a strict referrer policy `Origin` may be `null`."""
        site, origin = _all(headers, "sec-fetch-site"), _all(headers, "origin")
        own = f"http://{_all(headers, 'host')}"
        if site not in ("", "same-origin") or origin not in ("", "null", own):
            return False
        return site == "same-origin" or origin == own


def _all(headers: Message, name: str) -> str:
    """Sent twice, a header is none of those that are let in; cookies are separated so anyhow."""
    return ";".join(headers.get_all(name, []))


def _is_same(given: str, kept: str) -> bool:
    return hmac.compare_digest(given.encode(), kept.encode())
