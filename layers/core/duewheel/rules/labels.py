"""Labels: names with values, by which callers find their tasks and timers.

The service reads nothing in them. They are kept in the order of their names, so the same labels are
equal in whatever order they were given.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from duewheel.rules.fields import PRINTABLE, invalid, joined_path, says, texts_of, whole_text
from duewheel.rules.names import name_of, printable_name

LABELS_MAX = 8
VALUE_CHARACTERS_MAX = 128

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,62}")
NAME_IS = "1 to 63 of A-Z, a-z, 0-9, '.', '_', '/' and '-', beginning with a letter or digit"

Labels = tuple[tuple[str, str], ...]
NO_LABELS: Labels = ()

# Checked below: the refusal names the label.
LabelsField = Annotated[
    dict[
        Annotated[str, says(pattern=whole_text(NAME))],
        Annotated[Any, says(type="string"), name_of(VALUE_CHARACTERS_MAX)],
    ],
    says(
        "Names with values, by which lists are filtered; each value has 1 to "
        f"{VALUE_CHARACTERS_MAX} printable characters.",
        maxProperties=LABELS_MAX,
    ),
]
ShownLabels = dict[str, str]

_NOT_PRINTABLE = PRINTABLE["pattern"].removeprefix("^[^").removesuffix("]*$")
_EDGE, _INNER = f"[^ {_NOT_PRINTABLE}]", f"[^{_NOT_PRINTABLE}]"
_FILTER = f"^(?:{NAME.pattern}):{_EDGE}(?:{_INNER}{{0,{VALUE_CHARACTERS_MAX - 2}}}{_EDGE})?$"

LabelFilter = Annotated[
    tuple[Annotated[str, says(pattern=_FILTER)], ...],
    says(
        "A name and a value as `name:value`. It may be given more than once: all must match.",
        maxItems=LABELS_MAX,
    ),
]


def labels_from(members: Mapping[str, object], path: str = "labels") -> Labels:
    if len(members) > LABELS_MAX:
        raise invalid(path, f"must have at most {LABELS_MAX} labels.")
    return checked_labels(texts_of(members, path), path)


def checked_labels(labels: Iterable[tuple[str, str]], path: str) -> Labels:
    return tuple(sorted(_checked(name, value, path) for name, value in labels))


def _checked(name: str, value: str, path: str) -> tuple[str, str]:
    where = joined_path(path, name)
    if not NAME.fullmatch(name):
        raise invalid(where, f"is no name of a label: {NAME_IS}.")
    return name, printable_name(value, VALUE_CHARACTERS_MAX, where)


def wanted_labels(texts: Iterable[str], path: str = "label") -> Labels:
    """Of a filter. One that is given twice counts once; two values of a name match nothing."""
    found = []
    for text in texts:
        name, colon, value = text.partition(":")
        if not colon:
            raise invalid(path, "must be a name and a value, such as team:billing.")
        found.append((name, value))
    wanted = checked_labels(dict.fromkeys(found), path)
    if len(wanted) > LABELS_MAX:
        raise invalid(path, f"must be given at most {LABELS_MAX} times.")
    return wanted


def has_all(labels: Labels, wanted: Labels) -> bool:
    return set(wanted) <= set(labels)


def written(labels: Labels) -> tuple[str, ...]:
    """As filters have them."""
    return tuple(f"{name}:{value}" for name, value in labels)
