"""An app of the xTimer interface as a business, and back.

An app whose name is a valid business name is that business. Any other is `x.` and its name, with
`_` and two hexadecimal digits for each UTF-8 byte that a business name may not hold; so is a name
that begins with `x.`. So no two apps share a business.
"""

import re

from duewheel.rules.fields import invalid
from duewheel.rules.names import BIZ_TYPE

_MARK = "x."
_AS_IT_IS = re.compile("[a-z0-9.-]")
_BYTE = re.compile("_([0-9a-f]{2})")


def biz_type_of(app: str) -> str:
    if BIZ_TYPE.fullmatch(app) and not app.startswith(_MARK):
        return app
    biz_type = _MARK + "".join(map(_written, app))
    if not BIZ_TYPE.fullmatch(biz_type):
        raise invalid("app", "is too long, with what its characters take in a business's name.")
    return biz_type


def app_of(biz_type: str) -> str:
    """A business that is written as no app would be is an app by its own name."""
    if biz_type.startswith(_MARK):
        app = _read(biz_type.removeprefix(_MARK))
        if app is not None and biz_type_of(app) == biz_type:
            return app
    return biz_type


def _written(character: str) -> str:
    if _AS_IT_IS.fullmatch(character):
        return character
    return "".join(f"_{byte:02x}" for byte in character.encode())


def _read(written: str) -> str | None:
    raw = bytearray()
    at = 0
    while at < len(written):
        if (byte := _BYTE.match(written, at)) is not None:
            raw.append(int(byte[1], 16))
            at = byte.end()
        else:
            raw += written[at].encode()
            at += 1
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None
