"""Read a query string into a Struct.

A parameter may be repeated if it is one of a list. An unknown, otherwise repeated or badly encoded
parameter is refused by its name. A plus sign is a plus sign, as in RFC 3986, so the offset of
an instant survives.
"""

from typing import Annotated, Any, ClassVar, TypeVar
from urllib.parse import unquote

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
        if name in kind.repeatable:
            values.setdefault(name, []).append(value)
        elif name in values:
            raise invalid(joined_path("", name), "is given more than once.")
        else:
            values[name] = value
    return read_members(values, kind)


def _decoded(text: str, name: str) -> str:
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError as error:
        raise invalid(joined_path("", name), "is not percent-encoded UTF-8.") from error
