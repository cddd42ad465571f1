"""Write entries: reserve shards and a place, put the entry, announce it.

An entry is announced if the scheduler may have dispatched its second before it was written. A
direct entry, whose slice may have been read, too, is announced by a message that names it; any
other by the message of its page that the scheduler would send. A process announces a page once for
all its entries, and once more for one that is due earlier.

The steps are separate because the home is named in the same write that records why. Only the sweep
deletes entries, when it has passed their second: an entry that no home names is never delivered,
and a delivered one shows the sweep what became of it.

Planned writes are added to the load estimate of their seconds before the shards are reserved. A
shard is used only after the header that announces it was written.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby

from msgspec import Struct, field
from msgspec.structs import replace

from duewheel.clock import Clock
from duewheel.log import logger
from duewheel.rules.tasks.task import NewTask, Task
from duewheel.rules.tolerance import Window
from duewheel.rules.wheel import timing
from duewheel.rules.wheel.addresses import Address
from duewheel.rules.wheel.queue_messages import DirectMessage, PageMessage
from duewheel.rules.wheel.sharding import Placement, is_looked_at, sampled, shards_for
from duewheel.stores.dynamodb import Throttled, chunks
from duewheel.stores.tasks.tasks import TaskStore
from duewheel.stores.wheel.pointers import TIME, PointerStore
from duewheel.stores.wheel.sharding import HeaderCache, HeaderStore, LoadStore
from duewheel.workflows.wheel.send_messages import MessageSender

ENTRIES_PER_MESSAGE = 25
Wanted = tuple[Window, bytes]  # when an entry may fall due, and its random bytes
Tolerances = Mapping[str, int]  # of businesses that have one
NO_TOLERANCES: Tolerances = {}
_CROWDED_SHARDS = 2
_TIME_READ_EVERY_MS = 10_000
Announcements = Mapping[DirectMessage | PageMessage, int]  # with the first instant of each


class RefreshAwsTime:
    """Reads the time pointer if this process has not for ten seconds. AWS's time comes with the
    answer, so a writer whose clock is far behind never trusts an older one."""

    def __init__(self, store: PointerStore, clock: Clock, origin: int) -> None:
        self._store = store
        self._clock = clock
        self._origin = origin
        self._read_ms: int | None = None

    def __call__(self) -> None:
        now_ms = self._clock.now_ms()
        if self._read_ms is None or not 0 <= now_ms - self._read_ms < _TIME_READ_EVERY_MS:
            self._store.read(TIME, self._origin, strongly=False)
            self._read_ms = now_ms


class ReserveShards(Struct, frozen=True):
    loads: LoadStore
    headers: HeaderStore
    known: HeaderCache
    random_unit: Callable[[], float]

    def __call__(self, seconds: Iterable[int], *, surely: bool = False) -> dict[int, int]:
        """The shard counts of the crowded seconds; `seconds` names one for each entry. `surely`: no
        second is left out by sampling."""
        entries = Counter(seconds)
        expected = self.loads.add(sampled(entries.elements(), self.random_unit))
        unknown = [
            second
            for second, number in entries.items()
            if (surely or second not in expected)
            and not self.known.of([second])
            and (surely or is_looked_at(number, self.random_unit))
        ]
        if unknown:
            self.known.keep(self.headers.read(unknown))
        for second in expected.keys() & entries.keys():
            self._raise(second, shards_for(expected[second]))
        return self.known.of(entries)

    def after_throttle(self, seconds: Iterable[int]) -> dict[int, int]:
        """The same for seconds in which DynamoDB throttled a write. Such a second is treated as
        crowded."""
        seconds = set(seconds)
        self.known.keep(self.headers.read(seconds))
        for second in seconds:
            self._raise(second, _CROWDED_SHARDS)
        return self.known.of(seconds)

    def _raise(self, second: int, shards: int) -> None:
        if shards > self.known.one(second):
            current = self.headers.raise_to(second, shards)
            if current is not None:
                self.known.keep({second: current})


class EntryWriter(Struct, frozen=True, kw_only=True):
    clock: Clock
    tasks: TaskStore
    message_sender: MessageSender
    random_bytes: Callable[[], bytes]
    refresh_aws_time: Callable[[], None]
    aws_ms: Callable[[], int]
    reserve_shards: ReserveShards
    lead_ms: int
    announced: dict[DirectMessage | PageMessage, int] = field(default_factory=dict)  # pages alone

    def placement(self, tolerances: Tolerances = NO_TOLERANCES) -> Placement:
        """The placement as of now, without shards."""
        self.refresh_aws_time()
        return Placement(now_ms=self._now_ms(), lead_ms=self.lead_ms, tolerances=tolerances)

    def with_shards(
        self, placement: Placement, wanted: Sequence[Wanted], *, is_throttled: bool = False
    ) -> Placement:
        """With the shards reserved for entries that are about to be written. An entry whose shared
        second is known to be crowded counts where its tolerance spreads it to; where that shows
        only now, it gets no more shards than are known. `is_throttled`: DynamoDB throttled a first
        try."""
        reserve = self.reserve_shards.after_throttle if is_throttled else self.reserve_shards
        shared = {placement.shared_second(window) for window, _ in wanted}
        placement = self._with_known(placement, shared)
        reserve(_seconds(placement, wanted))
        placement = self._with_known(placement, shared)
        return self._with_known(placement, {*shared, *_seconds(placement, wanted)})

    def placement_now(self) -> Placement:
        """The placement for one entry that is due at once."""
        placement = self.placement()
        return self.with_shards(placement, [(Window(placement.now_ms), b"")])

    def placed(
        self,
        news: Sequence[NewTask],
        tolerances: Tolerances = NO_TOLERANCES,
        *,
        is_throttled: bool = False,
    ) -> list[Task]:
        """The tasks as they are to be stored, at places that no other task can get. `tolerances`:
        of their businesses."""
        placement = self.placement(tolerances)
        tokens = [self.random_bytes() for _ in news]
        wanted = [(new.window, token) for new, token in zip(news, tokens, strict=True)]
        placement = self.with_shards(placement, wanted, is_throttled=is_throttled)
        return [new.placed(placement, token) for new, token in zip(news, tokens, strict=True)]

    def addresses(self, instants: Sequence[int], *, is_throttled: bool = False) -> list[Address]:
        """The addresses of entries that are written now for these instants."""
        wanted = [(Window(instant_ms), b"") for instant_ms in instants]
        placement = self.with_shards(self.placement(), wanted, is_throttled=is_throttled)
        return [placement.address(instant_ms, self.random_bytes()) for instant_ms in instants]

    def due_ms(self, window: Window, tolerances: Tolerances = NO_TOLERANCES) -> int:
        """The instant that a task with this window gets, as far as this process knows crowded
        seconds. Nothing is read or reserved."""
        placement = Placement(now_ms=self._now_ms(), lead_ms=self.lead_ms, tolerances=tolerances)
        placement = self._with_known(placement, [placement.shared_second(window)])
        return placement.due_ms(window, self.random_bytes())

    def _with_known(self, placement: Placement, seconds: Iterable[int]) -> Placement:
        return replace(placement, shards=self.reserve_shards.known.of(seconds))

    def put(self, task: Task, instant_ms: int) -> Address:
        """If the write succeeded and its answer was lost, the entry stays, and no home names it."""
        (entry,) = self.addresses([instant_ms])
        try:
            self.tasks.put_entry(entry, task.home)
        except Throttled:
            (entry,) = self.addresses([instant_ms], is_throttled=True)
            self.tasks.put_entry(entry, task.home)
        return entry

    def announce(self, entries: Iterable[Address], *, one_by_one: bool = False) -> None:
        """Announce the written entries. They are stored; if the queue refuses, the sweep delivers
        them, late."""
        written = sorted(entries, key=lambda entry: entry.place)
        direct = [entry for entry in written if entry.direct]
        pages = self._pages(entry for entry in written if not entry.direct)
        if not direct and not pages:
            return
        size = 1 if one_by_one else ENTRIES_PER_MESSAGE
        refused = self._send({**self._naming(direct, size), **pages})
        self.announced.update((page, at) for page, at in pages.items() if page not in refused)

    def _pages(self, entries: Iterable[Address]) -> Announcements:
        """The messages of the pages that are not announced yet, as early as they are needed.
        That of the first shard is the message of the whole second."""
        now_ms = self._now_ms()
        first_ms: dict[PageMessage, int] = {}
        for entry in entries:
            if timing.is_near(entry.second, now_ms, self.lead_ms, timing.AHEAD_MS):
                first_ms.setdefault(PageMessage(entry.second, 0), entry.instant_ms)
        for message in list(self.announced):  # a copy: other threads announce, too
            if message.second * 1000 < now_ms:
                self.announced.pop(message, None)
        pages: dict[DirectMessage | PageMessage, int] = {}
        for page, instant_ms in first_ms.items():
            announced_ms = self.announced.get(page)
            if announced_ms is None:
                pages[page] = instant_ms
            elif instant_ms < announced_ms:
                pages[page] = page.second * 1000
        return pages

    def _naming(self, entries: Iterable[Address], size: int) -> Announcements:
        """Messages that name these entries, which are in order."""
        messages: dict[DirectMessage | PageMessage, int] = {}
        for second, group in groupby(entries, key=lambda entry: entry.second):
            for some in chunks(list(group), size):
                names = tuple(entry.name for entry in some)
                messages[DirectMessage(second, names)] = some[0].instant_ms
        return messages

    def _send(self, messages: Announcements) -> list[DirectMessage | PageMessage]:
        """Delayed until shortly before the first instant: a notifier that waits costs money."""

        def delay_seconds(message: DirectMessage | PageMessage) -> int:
            return timing.delay_seconds(messages[message] - self.lead_ms, self._now_ms())

        refused = self.message_sender.send(messages, delay_seconds)
        if refused:
            logger.error(
                "entries left to the sweep",
                action="direct-refused",
                entries=[n for m in refused if isinstance(m, DirectMessage) for n in m.entries],
                seconds=[one.second for one in refused if isinstance(one, PageMessage)],
            )
        return refused

    def _now_ms(self) -> int:
        return timing.not_behind_ms(self.clock.now_ms(), self.aws_ms())


def _seconds(placement: Placement, wanted: Iterable[Wanted]) -> list[int]:
    return [placement.second(placement.due_ms(window, token)) for window, token in wanted]
