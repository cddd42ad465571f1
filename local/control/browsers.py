"""Decides which requests are accepted.

A page of any site can make the developer's browser send requests to a port of this machine, also by
a host name of its own that resolves to it.

Invariant: an accepted request was sent to this stack's address, and by no page of another site. A
request without `Origin` and `Sec-Fetch-Site` is from no page: browsers write them, and pages cannot
remove them.
"""

from email.message import Message

HOST_NAMES = ("127.0.0.1", "localhost")
HTTP_PORT = 80  # browsers omit it
OWN_SITES = ("same-origin", "none")  # none: the address was typed
READS = ("GET", "HEAD")


def refused(method: str, target: str, headers: Message, port: int) -> str | None:
    """Why this request is refused; None if it is accepted."""
    hosts = [name if port == HTTP_PORT else f"{name}:{port}" for name in HOST_NAMES]
    host = _all(headers, "host").lower()
    if host not in hosts:
        return f"The local stack answers to {' and '.join(hosts)} only."
    if not _is_of_the_console(method, target) and not _is_own_origin(headers, host):
        return "The local stack takes calls from its own pages and from programs only."
    return None


def _is_of_the_console(method: str, target: str) -> bool:
    """Its files are public, and pages of other sites may link to them."""
    path = target.partition("?")[0]
    return method in READS and (path in ("/", "/console") or path.startswith("/console/"))


def _is_own_origin(headers: Message, host: str) -> bool:
    site, origin = _all(headers, "sec-fetch-site"), _all(headers, "origin")
    if site == "same-origin" and origin == "null":  # under a strict referrer policy
        return True
    return site in ("", *OWN_SITES) and origin in ("", f"http://{host}")


def _all(headers: Message, name: str) -> str:
    """A header that is sent twice is not accepted."""
    return ";".join(headers.get_all(name, []))
