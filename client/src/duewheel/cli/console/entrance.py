"""Admission to the proxy. An admitted browser acts with the credentials of the user who started it.

Invariant: the cookie is issued once, for the token that only the user's terminal has shown. This
module logs nothing, and no answer contains a secret of it except for the cookie.
"""

import hmac
import secrets
from email.message import Message
from threading import Lock

HOST = "127.0.0.1"
HOST_NAMES = (HOST, "localhost")
HTTP_PORT = 80  # browsers leave it out of the host


class Entrance:
    def __init__(self, port: int) -> None:
        ending = "" if port == HTTP_PORT else f":{port}"
        self._hosts = tuple(name + ending for name in HOST_NAMES)
        self._cookie = f"duewheel_console_{port}"  # cookies ignore ports
        self._token = secrets.token_urlsafe(32)
        self._pass = secrets.token_urlsafe(32)
        self._is_token_good = True
        self._lock = Lock()

    @property
    def address(self) -> str:
        """The address with the token, which is accepted once."""
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
        """Refuse other host names, against DNS rebinding: to the browser, a name that another site
        made lead here is of that site's origin."""
        return _all(headers, "host") in self._hosts

    def is_same_origin(self, headers: Message) -> bool:
        """Whether a page of this origin made the request. Current browsers send both headers, old
        ones `Origin` alone. Under a strict referrer policy `Origin` may be `null`."""
        site, origin = _all(headers, "sec-fetch-site"), _all(headers, "origin")
        own = f"http://{_all(headers, 'host')}"
        if site not in ("", "same-origin") or origin not in ("", "null", own):
            return False
        return site == "same-origin" or origin == own


def _all(headers: Message, name: str) -> str:
    """All values of a header, joined. A header that is sent twice is not accepted; cookies are
    joined in the same way."""
    return ";".join(headers.get_all(name, []))


def _is_same(given: str, kept: str) -> bool:
    return hmac.compare_digest(given.encode(), kept.encode())
