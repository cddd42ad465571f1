"""The console: static files, the same for everybody, with nothing in them of anybody's.

They alone are answered without asking who it is. What they show they fetch from `/v1`, with the
access of whoever looks at them; and no script runs there but those that stand here.
"""

from functools import cache
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from duewheel.interface.answer import Answer
from duewheel.interface.problems import refused
from duewheel.interface.request import Request
from duewheel.rules.refusals import UnknownCall

PATH = "/console"

_FOLDER = Path(__file__).parents[1] / "console"
_INDEX = "index.html"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        # No text becomes markup or script, whatever a script of the console does with it.
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
_HEADERS = {
    "cache-control": "no-cache",  # asked for anew, and answered by 304 while it is the same
    "content-security-policy": _POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


class _File(Struct, frozen=True):
    text: str
    content_type: str
    etag: str


def is_of_console(request: Request) -> bool:
    is_below = request.path == PATH or request.path.startswith(f"{PATH}/")
    return request.method == "GET" and is_below


def console_file(request: Request) -> Answer:
    name = request.path.removeprefix(PATH).removeprefix("/") or _INDEX
    file = _files().get(name)
    if file is None:
        return refused(UnknownCall(f"{request.path} is no file of the console."))
    headers = {**_HEADERS, "etag": file.etag}
    if request.if_none_match == file.etag:
        return Answer(304, "", file.content_type, headers)
    return Answer(200, file.text, file.content_type, headers)


@cache
def _files() -> dict[str, _File]:
    """By name. What is asked for is looked up here, and never becomes a path."""
    paths = (path for path in _FOLDER.rglob("*") if path.suffix in _TYPES)
    return {path.relative_to(_FOLDER).as_posix(): _file(path) for path in paths}


def _file(path: Path) -> _File:
    raw = path.read_bytes()
    return _File(raw.decode(), _TYPES[path.suffix], f'"{sha256(raw).hexdigest()[:16]}"')
