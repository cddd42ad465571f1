"""The record of a line: what its scope has given out, whether something waits, and who serves it.

A scope is a business, or a flow key, with limits. While nothing waits, pages take turns and permits
from the record side by side, each by one conditional write, and give permits back by another. While
something waits, one server has the lease of the line: it alone takes, and pages put their tasks
behind those that wait.

Each function returns the record as it is to be written, if the stored one still has the version
that was read. None: there is nothing to write.

Invariants, for clocks that differ by up to SKEW_MS:

- What a run may have under way is in `out` before its first call, and its calls end by then. So
  permits of a run that died come back by themselves, and never too early.
- Turns are moved on before the calls that use them. Those of a run that died are lost, never used
  twice.
- Whoever makes room, or puts something into the line, looks at the record afterwards: if something
  waits that is not served, a message asks for a server. A line that sleeps is woken by room alone.
  Who gives the lease back looks as well. So of the two that meet, one sees the other.
"""

from collections.abc import Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from duewheel.rules.wheel.timing import SKEW_MS

US_PER_MS = 1_000


class Out(Struct, frozen=True, array_like=True):
    """What a run has under way at most, and until when its calls have ended."""

    count: int
    until_ms: int

    def counts_at(self, now_ms: int) -> bool:
        return now_ms <= self.until_ms + SKEW_MS


class Limits(Struct, frozen=True, kw_only=True):
    """Of a scope, as its settings are now. `interval_us`: between two turns."""

    interval_us: int | None = None
    in_flight: int | None = None
    is_open: bool = True

    @property
    def takes_nothing(self) -> bool:
        return self.interval_us is None and self.in_flight is None


class Record(Struct, frozen=True, kw_only=True):
    """`turn_us`: when the next turn is free, by the interval with which the last one was taken.
    `owner`: the server, a random token. `sleep_ms`: nothing can begin before, and a message wakes
    the line then. `listed`: the place of the item by which the line of the business knows that of a
    key."""

    version: int = 0  # 0: there is no record
    turn_us: int = 0
    interval_us: int = 0
    out: Mapping[str, Out] = field(default_factory=dict)
    works_until_ms: int = 0  # no work that goes on after its call counts for longer
    waits: bool = False
    owner: str | None = None
    owned_until_ms: int = 0
    sleep_ms: int | None = None
    listed: str | None = None

    def is_served(self, now_ms: int) -> bool:
        return self.owner is not None and now_ms <= self.owned_until_ms + SKEW_MS

    def is_asleep(self, now_ms: int) -> bool:
        """A sleep that is past counts as none: its message may be lost."""
        return self.sleep_ms is not None and now_ms <= self.sleep_ms + SKEW_MS

    def lacks_server(self, now_ms: int) -> bool:
        """Who has made room asks for one, also if the line is asleep."""
        return self.waits and not self.is_served(now_ms)

    def asks_for_server(self, now_ms: int) -> bool:
        """Who has put something into the line asks only then."""
        return self.lacks_server(now_ms) and not self.is_asleep(now_ms)

    def is_in_hands_of_others(self, run: str, now_ms: int) -> bool:
        return self.is_served(now_ms) and self.owner != run


# Room


def room(record: Record, run: str, limits: Limits, works: int, now_ms: int, most: int) -> int:
    """How many calls this run may have under way, and no more than `most`. `works`: how many go on
    after their calls."""
    if limits.in_flight is None:
        return most
    others = sum(
        out.count for name, out in record.out.items() if name != run and out.counts_at(now_ms)
    )
    return max(0, min(most, limits.in_flight - others - works))


def room_from_ms(record: Record, now_ms: int) -> int | None:
    """The earliest end of what is out, unless it is given back before."""
    ends = [out.until_ms + SKEW_MS + 1 for out in record.out.values() if out.counts_at(now_ms)]
    return min(ends, default=None)


def next_turn_us(record: Record, limits: Limits, now_ms: int) -> int:
    """When the next turn is free. A higher rate than before holds from the last turn on."""
    now_us = now_ms * US_PER_MS
    if limits.interval_us is None:
        return now_us
    last_us = record.turn_us - record.interval_us
    interval_us = min(limits.interval_us, record.interval_us) if record.interval_us else 0
    return max(now_us, last_us + interval_us)


def with_turns(record: Record, limits: Limits, count: int, now_ms: int) -> Record:
    """Moved on by so many turns."""
    if limits.interval_us is None or not count:
        return record
    free_us = next_turn_us(record, limits, now_ms) + count * limits.interval_us
    return replace(record, turn_us=free_us, interval_us=limits.interval_us)


# Pages, while nothing waits


class Grant(Struct, frozen=True):
    """How many calls a page may make, the first at a turn (by the clock of the page), the others an
    interval apart each."""

    count: int
    first_us: int = 0

    def turn_ms(self, number: int, interval_us: int | None) -> int:
        """Rounded up: no call is made before its turn."""
        return -(-(self.first_us + number * (interval_us or 0)) // US_PER_MS)


def granted(
    record: Record,
    run: str,
    limits: Limits,
    wanted: int,
    works: int,
    now_ms: int,
    ahead_ms: int,
    end_ms: int,
) -> tuple[Record | None, Grant]:
    """Turns that come within `ahead_ms`, and permits until `end_ms`, for as many of the wanted
    calls as possible. The record says that something waits if these are fewer."""
    count = wanted
    if record.waits or record.is_served(now_ms) or not limits.is_open:
        count = 0
    count = min(count, room(record, run, limits, works, now_ms, count))
    first_us = next_turn_us(record, limits, now_ms)
    if limits.interval_us is not None:
        ahead_us = (now_ms + ahead_ms) * US_PER_MS - first_us
        count = max(0, min(count, ahead_us // limits.interval_us + 1))
    after = with_turns(record, limits, count, now_ms)
    if count and limits.in_flight is not None:
        after = replace(after, out={**_counting(after, now_ms), run: Out(count, end_ms)})
    after = replace(after, waits=record.waits or count < wanted)
    return _written(record, after), Grant(count, first_us)


def given_back(record: Record, run: str, *, waits: bool, works_until_ms: int = 0) -> Record | None:
    """The calls of a page have ended. `waits`: some of its tasks could not be called."""
    after = replace(
        record,
        out={name: out for name, out in record.out.items() if name != run},
        waits=record.waits or waits,
        works_until_ms=max(record.works_until_ms, works_until_ms),
    )
    return _written(record, after)


def entered(record: Record) -> Record | None:
    """Something has been put into the line."""
    return _written(record, replace(record, waits=True))


# The server


def taken(
    record: Record,
    run: str,
    limits: Limits,
    works: int,
    named_ms: int | None,
    now_ms: int,
    lease_ms: int,
    longest_ms: int,
    most: int,
) -> Record | None:
    """With the lease, and with what the server may have under way; None if it does not get it.
    `named_ms`: the sleep to whose end the message belongs. It has nothing to do beside another."""
    if record.is_in_hands_of_others(run, now_ms):
        return None
    if named_ms is not None and record.is_asleep(now_ms) and record.sleep_ms != named_ms:
        return None
    return _leased(record, run, limits, works, 0, now_ms, lease_ms, longest_ms, most)


def renewed(
    record: Record,
    run: str,
    limits: Limits,
    works: int,
    under_way: int,
    now_ms: int,
    lease_ms: int,
    longest_ms: int,
    most: int,
) -> Record | None:
    """None: another one has the lease."""
    if record.owner != run:
        return None
    return _leased(record, run, limits, works, under_way, now_ms, lease_ms, longest_ms, most)


def _leased(
    record: Record,
    run: str,
    limits: Limits,
    works: int,
    under_way: int,
    now_ms: int,
    lease_ms: int,
    longest_ms: int,
    most: int,
) -> Record:
    """Calls that begin within the lease end `longest_ms` behind it at the latest."""
    count = under_way  # also while no limit holds: one may be set before these have ended
    if limits.in_flight is not None:
        count = max(under_way, room(record, run, limits, works, now_ms, most))
    until_ms = now_ms + lease_ms
    out = {name: one for name, one in _counting(record, now_ms).items() if name != run}
    if count:
        out[run] = Out(count, until_ms + longest_ms)
    return replace(
        record,
        version=record.version + 1,
        owner=run,
        owned_until_ms=until_ms,
        sleep_ms=None,
        out=out,
    )


def turn_taken(record: Record, run: str, limits: Limits, count: int, now_ms: int) -> Record | None:
    """The server takes its next turns; None: another one has the lease."""
    if record.owner != run:
        return None
    return replace(with_turns(record, limits, count, now_ms), version=record.version + 1)


class LeftBehind(Struct, frozen=True):
    """How a server leaves its line. `is_empty`: it has seen nothing in it. `sleep_ms`: nothing can
    begin before. Neither: it hands over, or the line is closed. `under_way`: its calls go on until
    then, in another hand."""

    is_empty: bool = False
    sleep_ms: int | None = None
    under_way: Out | None = None


def handed_back(record: Record, run: str, left: LeftBehind, works_until_ms: int) -> Record | None:
    """Without the lease, also if it is over already, and without what the server has declared. If
    another one has the lease, that stays. The server looks at the line afterwards."""
    out = {name: one for name, one in record.out.items() if name != run}
    if left.under_way is not None:
        out[run] = left.under_way
    after = replace(record, out=out, works_until_ms=max(record.works_until_ms, works_until_ms))
    if record.owner == run:
        after = replace(
            after,
            owner=None,
            waits=not left.is_empty,
            sleep_ms=left.sleep_ms,
        )
    return _written(record, after)


def _counting(record: Record, now_ms: int) -> dict[str, Out]:
    """What is over is left out."""
    return {name: out for name, out in record.out.items() if out.counts_at(now_ms)}


def _written(before: Record, after: Record) -> Record | None:
    return None if after == before else replace(after, version=before.version + 1)
