"""Labels in the items of tasks: an attribute of JSON text, absent without labels."""

from typing import Annotated, Any

from msgspec import Meta
from msgspec.json import Decoder, encode

from duewheel.rules.fields import whole_text
from duewheel.rules.labels import LABELS_MAX, NAME, VALUE_CHARACTERS_MAX, Labels

LABELS = "labels"

_Name = Annotated[str, Meta(pattern=whole_text(NAME))]
_Value = Annotated[str, Meta(min_length=1, max_length=VALUE_CHARACTERS_MAX)]
StoredLabels = Annotated[dict[_Name, _Value], Meta(min_length=1, max_length=LABELS_MAX)]
_labels = Decoder(StoredLabels)


def labels_attribute(labels: Labels) -> dict[str, Any]:
    return {LABELS: {"S": encode(dict(labels)).decode()}} if labels else {}


def labels_of_text(source: str) -> Labels:
    """Raises one of `NOT_UNDERSTOOD` for a text that is never written here."""
    return tuple(sorted(_labels.decode(source).items()))
