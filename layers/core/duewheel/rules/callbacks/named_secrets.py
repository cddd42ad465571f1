"""Named secrets of a business, and headers that refer to them.

A header's value ends with `{{secret:NAME}}`; the text before it, such as `Bearer `, is no secret.
Invariant: a secret is in a header only between filling in and the call, and only if the call goes
to an origin that the business trusts.
"""

import re
from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from duewheel.rules.callbacks.types import HttpCallback

NAMED_SECRETS_MAX = 20
VALUE_CHARACTERS_MAX = 1_024
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
PREFIX_CHARACTERS_MAX = 32

_BEGINS = "{{secret:"
_REFERENCE = re.compile(
    rf"([^{{}}]{{0,{PREFIX_CHARACTERS_MAX}}})\{{\{{secret:({NAME.pattern})\}}\}}"
)


class NamedSecret(Struct, frozen=True):
    """Sealed: only a notifier can open it."""

    name: str
    sealed: bytes


def is_reference(value: str) -> bool:
    return _REFERENCE.fullmatch(value) is not None


def wrong_reference(value: str) -> bool:
    """Whether a value looks like a reference and is none."""
    return _BEGINS in value and not is_reference(value)


def names_in(callback: object) -> frozenset[str]:
    """The names of the secrets to which a callback's headers refer."""
    if not isinstance(callback, HttpCallback):
        return frozenset()
    found = (_REFERENCE.fullmatch(value) for _, value in callback.headers if _BEGINS in value)
    return frozenset(reference[2] for reference in found if reference)


def filled(callback: HttpCallback, values: Mapping[str, str]) -> HttpCallback:
    """The callback as it is called; `values` has every name to which it refers."""
    headers = tuple((name, _filled(value, values)) for name, value in callback.headers)
    return replace(callback, headers=headers)


def merged(
    before: Iterable[NamedSecret], change: Mapping[str, NamedSecret | None]
) -> tuple[NamedSecret, ...] | None:
    """By name: the change sets, replaces, or with None removes a secret."""
    by_name = {secret.name: secret for secret in before}
    after = {name: one for name, one in {**by_name, **change}.items() if one is not None}
    return tuple(after[name] for name in sorted(after)) or None


def _filled(value: str, values: Mapping[str, str]) -> str:
    reference = _REFERENCE.fullmatch(value)
    return value if reference is None else reference[1] + values[reference[2]]
