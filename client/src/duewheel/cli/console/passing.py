"""Passes requests on to the service, and answers back: paths, headers and failures.

Invariant: only the console's files and the calls are reachable. The signed address is written as
the client writes it, so that the service checks the signature of the same path.
"""

from collections.abc import Iterator
from email.message import Message
from http import HTTPStatus
from http.cookiejar import DefaultCookiePolicy
from urllib.parse import parse_qsl, quote, unquote

import httpx

from duewheel import whereabouts
from duewheel._sync.client import CONNECT_SECONDS, TIMEOUT_SECONDS
from duewheel.answers import NOT_SENT
from duewheel.calls import part
from duewheel.cli.console.replies import Refused, Reply, problem
from duewheel.cli.console.turned_away import turned_away
from duewheel.cli.failures import Failed, reported

ROOMS = ("console", "v1")
READS = ("GET", "HEAD")
SENT = (
    "accept",
    "content-type",
    "idempotency-key",
    "if-match",
    "if-modified-since",
    "if-none-match",
)
ANSWERED = (
    "allow",
    "apigw-requestid",
    "cache-control",
    "content-security-policy",
    "content-type",
    "cross-origin-opener-policy",
    "date",
    "etag",
    "expires",
    "last-modified",
    "location",
    "permissions-policy",
    "referrer-policy",
    "retry-after",
    "vary",
)
NOT_IN_A_NAME = frozenset("/\\%")  # the next server could read them as separators


def target_of(raw: str) -> str:
    """Path and query as they are sent to the service; refused if they name no call or file."""
    path, _, query = raw.partition("?")
    try:
        names = [unquote(each, errors="strict") for each in path.removeprefix("/").split("/")]
        parts = [part(name) for name in names]
        pairs = parse_qsl(query, keep_blank_values=True, errors="strict", max_num_fields=100)
    except ValueError:
        raise Refused(HTTPStatus.BAD_REQUEST, "The path or its query cannot be read.") from None
    if not raw.isascii() or not raw.startswith("/") or not all(map(_is_name, names)):
        raise Refused(HTTPStatus.BAD_REQUEST, "A path like this is not passed on.")
    if names[0] not in ROOMS or names == ["v1"]:
        raise Refused(HTTPStatus.NOT_FOUND, "Only /console and /v1 are passed on.")
    written = "&".join(f"{quote(name, safe='')}={quote(text, safe='')}" for name, text in pairs)
    return "/" + "/".join(parts) + (f"?{written}" if written else "")


def _is_name(name: str) -> bool:
    return name.isprintable() and not NOT_IN_A_NAME & set(name)


def is_of_the_console(target: str) -> bool:
    return not target.startswith("/v1/")


def sent_headers(headers: Message) -> dict[str, str]:
    """The headers that the service reads, except the browser's own credentials."""
    sent = {name: text for name in SENT if (text := ", ".join(headers.get_all(name, [])))}
    if not all(text.isascii() and text.isprintable() for text in sent.values()):
        raise Refused(HTTPStatus.BAD_REQUEST, "A header holds what no header can.")
    return sent


class Service:
    """Call the service in the name of the user who started the proxy."""

    def __init__(
        self, url: str, auth: httpx.Auth | None, transport: httpx.BaseTransport | None = None
    ) -> None:
        self._url = url
        self._auth = auth
        self._http = httpx.Client(
            auth=auth,
            timeout=httpx.Timeout(TIMEOUT_SECONDS, connect=CONNECT_SECONDS),
            headers={"user-agent": whereabouts.USER_AGENT},
            transport=transport,
        )
        self._http.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=[]))  # none is kept

    def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Reply:
        url = self._url + target
        try:
            with reported():
                got = self._http.request(method, url, content=body or None, headers=headers)
        except httpx.RequestError as error:
            return _no_answer(error, method)
        except Failed as failed:  # credentials that cannot be renewed
            return problem(HTTPStatus.BAD_GATEWAY, f"The request was not sent. {failed.message}")
        away = turned_away(got, self._auth, is_call=not is_of_the_console(target))
        return away or Reply(got.status_code, tuple(_answered(got)), got.content)


def _answered(got: httpx.Response) -> Iterator[tuple[str, str]]:
    """The answer without cookies, without headers that would open this origin or lead out of it,
    and without values that cannot be written as a header."""
    for name in ANSWERED:
        text = got.headers.get(name)
        if text is None or (name == "location" and got.is_redirect):
            continue
        if text.isascii() and text.isprintable():
            yield name, text


def _no_answer(error: httpx.RequestError, method: str) -> Reply:
    detail = f"The service has not answered. {type(error).__name__}: {error}".rstrip(": ")
    if method not in READS and not isinstance(error, NOT_SENT):
        detail += ". The request may have been carried out or not."
    is_late = isinstance(error, httpx.TimeoutException)
    return problem(HTTPStatus.GATEWAY_TIMEOUT if is_late else HTTPStatus.BAD_GATEWAY, detail)
