"""The console: static files, the same for every caller, without data.

Only these files are served without authentication. The page fetches its data from `/v1` with the
caller's access, and runs no scripts but these files.
"""

from functools import cache
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from duewheel.interface.http import CONSOLE_PATH, Answer, Request
from duewheel.interface.problems import refused
from duewheel.rules.refusals import UnknownCall

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
        # No text becomes markup or script, even if a script of the console makes a mistake.
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
_ASKED_FOR_ANEW = "no-cache"  # and answered by 304 while it is the same
_NEVER_ANEW = "public, max-age=31536000, immutable"


class _File(Struct, frozen=True):
    text: str
    content_type: str
    etag: str
    kept: str


def console_file(request: Request) -> Answer:
    name = request.path.removeprefix(CONSOLE_PATH).removeprefix("/") or _INDEX
    file = _files().get(name)
    if file is None:
        return refused(UnknownCall(f"{request.path} is no file of the console."))
    headers = {**_HEADERS, "etag": file.etag, "cache-control": file.kept}
    if request.if_none_match == file.etag:
        return Answer(304, "", content_type=file.content_type, headers=headers)
    return Answer(200, file.text, content_type=file.content_type, headers=headers)


@cache
def _files() -> dict[str, _File]:
    """The files by name. A requested name is only a key of this mapping, never a path. The page
    names its files within their edition, and the files name each other relatively, so a browser
    that has the edition requests the page alone."""
    paths = sorted(path for path in _FOLDER.rglob("*") if path.suffix in _TYPES)
    texts = {path.relative_to(_FOLDER).as_posix(): path.read_text("utf-8") for path in paths}
    edition = _mark("".join(texts.values()))
    page = texts.pop(_INDEX).replace(f'"{CONSOLE_PATH}/', f'"{CONSOLE_PATH}/{edition}/')
    return {
        _INDEX: _file(_INDEX, page, _ASKED_FOR_ANEW),
        **{name: _file(name, text, _ASKED_FOR_ANEW) for name, text in texts.items()},
        **{f"{edition}/{name}": _file(name, text, _NEVER_ANEW) for name, text in texts.items()},
    }


def _file(name: str, text: str, kept: str) -> _File:
    return _File(text, _TYPES[Path(name).suffix], f'"{_mark(text)}"', kept)


def _mark(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]
