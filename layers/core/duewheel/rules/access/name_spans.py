"""The names of businesses that an access reaches, as spans of names in their order: a list of all
businesses reads these spans alone, however many others there are."""

from collections.abc import Iterator

from msgspec import Struct

from duewheel.rules.access.grants import ALL, Access

# Before and behind all characters of a name.
_FIRST, _LAST = "!", "~"


class NameSpan(Struct, frozen=True, order=True):
    """From `low` to `high`, both included."""

    low: str
    high: str

    @property
    def is_one_name(self) -> bool:
        return self.low == self.high

    def behind(self, name: str) -> "NameSpan | None":
        """The part of the span behind this name."""
        low = max(self.low, f"{name}{_FIRST}")
        return NameSpan(low, self.high) if low <= self.high else None


EVERY_NAME = NameSpan(_FIRST, _LAST)


def spans_within(access: Access, after: str | None = None) -> Iterator[NameSpan]:
    """In order, without a name twice; those behind `after`. Names with a common beginning contain
    each other or are apart, so a span that begins within the one before ends there as well."""
    before = NameSpan("", "")
    for span in sorted(
        map(_span, {grant.businesses for grant in access.grants}), key=_widest_first
    ):
        if span.low <= before.high:
            continue
        before = span
        rest = span if after is None else span.behind(after)
        if rest is not None:
            yield rest


def _span(businesses: str) -> NameSpan:
    if not businesses.endswith(ALL):
        return NameSpan(businesses, businesses)
    prefix = businesses.removesuffix(ALL)
    return NameSpan(prefix or _FIRST, prefix + _LAST)


def _widest_first(span: NameSpan) -> tuple[str, bool]:
    """Of the spans that begin with the same name: that of one name comes last."""
    return span.low, span.is_one_name
