"""The bytes of an HTTP/1.1 request.

No value of a header can end its line: a header that is not plain is refused here again.
"""

import re
from collections.abc import Mapping

from duewheel import __version__
from duewheel.rules.callbacks.http import is_of_the_delivery
from duewheel.rules.callbacks.types import HttpCallback
from duewheel.rules.callbacks.url import CallbackUrl

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_TEXT = "text/plain; charset=utf-8"
_VALUE = re.compile(r"[\t\x20-\x7e]*")


def request_bytes(
    url: CallbackUrl, callback: HttpCallback, service_headers: Mapping[str, str], body: bytes | None
) -> bytes:
    """Headers of the callback that the delivery sets itself are left out: earlier releases stored
    some. One name may have several lines. Raises ValueError if the request cannot be sent."""
    if callback.method == "GET":
        body = None
    usual = {"host": url.authority, "user-agent": f"duewheel/{__version__}", "accept": "*/*"}
    if body is not None:
        usual["content-type"] = _TEXT if callback.is_raw else "application/json"
    decided = {name.lower(): value for name, value in service_headers.items()}
    decided["accept-encoding"] = "identity"
    if callback.method != "GET":
        decided["content-length"] = str(len(body or b""))
    own = [(name.lower(), value) for name, value in callback.headers]
    own = [header for header in own if not is_of_the_delivery(header[0])]
    named = {*decided, *(name for name, _ in own)}
    headers = [header for header in usual.items() if header[0] not in named]
    lines = [f"{_token(callback.method)} {url.target} HTTP/1.1"]
    lines += [
        f"{_token(name)}: {_value(name, value)}"
        for name, value in (*headers, *own, *decided.items())
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("ascii") + (body or b"")


def _token(text: str) -> str:
    if not _TOKEN.fullmatch(text):
        raise ValueError(f"{text!r} is no method or header name")
    return text


def _value(name: str, value: str) -> str:
    if not _VALUE.fullmatch(value):
        raise ValueError(f"the header {name} has a value that is not plain ASCII")
    return value
