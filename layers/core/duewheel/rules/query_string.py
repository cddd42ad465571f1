"""Read a query string into a Struct.

A parameter may be repeated if it is one of a list. An unknown, otherwise repeated or badly encoded
parameter is refused by its name. A plus sign is a blank, as forms write it. An instant has no
blanks, so in one it is a plus sign: the offset survives, encoded or not.
"""

from functools import cache
from typing import Annotated, Any, ClassVar, TypeVar, get_args, get_type_hints
from urllib.parse import unquote_plus

from msgspec import Meta, Struct

from duewheel.rules.fields import invalid, joined_path, read_members
from duewheel.rules.labels import LabelFilter, Labels, wanted_labels

LIMIT_DEFAULT = 50
LIMIT_MAX = 100


class Query(Struct, forbid_unknown_fields=True):
    """The parameters that a call takes, with their types, bounds and defaults."""

    repeatable: ClassVar[tuple[str, ...]] = ()


class PageQuery(Query, kw_only=True):
    """Of a list that is answered page by page."""

    cursor: str | None = None
    limit: Annotated[int, Meta(ge=1, le=LIMIT_MAX)] = LIMIT_DEFAULT


class LabelledQuery(PageQuery, kw_only=True):
    """Of a list that is filtered by labels."""

    label: LabelFilter = ()

    repeatable: ClassVar[tuple[str, ...]] = ("label",)

    @property
    def labels(self) -> Labels:
        return wanted_labels(self.label)


Q = TypeVar("Q", bound=Query)


def read_query(query_string: str, kind: type[Q]) -> Q:
    values: dict[str, Any] = {}
    for pair in filter(None, query_string.split("&")):
        encoded_name, _, encoded_value = pair.partition("=")
        name = _decoded(encoded_name, encoded_name)
        value = _decoded(encoded_value, name)
        if name in _instants(kind):
            value = value.replace(" ", "+")
        if name in kind.repeatable:
            values.setdefault(name, []).append(value)
        elif name in values:
            raise invalid(joined_path("", name), "is given more than once.")
        else:
            values[name] = value
    return read_members(values, kind)


def _decoded(text: str, name: str) -> str:
    try:
        return unquote_plus(text, errors="strict")
    except UnicodeDecodeError as error:
        raise invalid(joined_path("", name), "is not percent-encoded UTF-8.") from error


@cache
def _instants(kind: type[Query]) -> frozenset[str]:
    """The parameters that are instants."""
    hints = get_type_hints(kind, include_extras=True)
    names = zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True)
    return frozenset(name for field, name in names if _is_instant(hints[field]))


def _is_instant(hint: Any) -> bool:
    metas = getattr(hint, "__metadata__", ())
    formats = [(meta.extra_json_schema or {}).get("format") for meta in metas]
    return "date-time" in formats or any(map(_is_instant, get_args(hint)))
