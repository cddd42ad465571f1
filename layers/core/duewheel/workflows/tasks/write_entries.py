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

With an express queue, an entry of a task of high priority makes its second an express one, and is
put into an express shard, whose page is announced by itself.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import groupby

from msgspec import Struct, field
from msgspec.structs import replace

from duewheel.clock import Clock
from duewheel.log import logger
from duewheel.rules.priority import Priority
from duewheel.rules.tasks.task import NewTask, Task
from duewheel.rules.tolerance import Window
from duewheel.rules.wheel import timing
from duewheel.rules.wheel.addresses import Address
from duewheel.rules.wheel.queue_messages import DirectMessage, PageMessage
from duewheel.rules.wheel.sharding import Header, Placement, is_looked_at, sampled, shards_for
from duewheel.stores.dynamodb import Throttled, chunks
from duewheel.stores.tasks.tasks import TaskStore
from duewheel.stores.wheel.sharding import HeaderCache, HeaderStore, LoadStore
from duewheel.workflows.wheel.send_messages import MessageSender

ENTRIES_PER_MESSAGE = 25
Wanted = tuple[Window, bytes]  # when an entry may fall due, and its random bytes
Tolerances = Mapping[str, int]  # of businesses that have one
NO_TOLERANCES: Tolerances = {}
_CROWDED_PARTS = 2
Announcements = Mapping[DirectMessage | PageMessage, int]  # with the first instant of each
PriorityOfBusiness = Callable[[str], Priority]


class ReserveShards(Struct, frozen=True):
    loads: LoadStore
    headers: HeaderStore
    known: HeaderCache
    random_unit: Callable[[], float]

    def __call__(
        self, seconds: Iterable[int], *, express: Collection[int] = (), surely: bool = False
    ) -> dict[int, Header]:
        """The headers of the seconds that have one; `seconds` names one for each entry. `express`:
        those with entries of high priority. `surely`: no second is left out by sampling."""
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
        for second in (expected.keys() | set(express)) & entries.keys():
            parts = shards_for(expected.get(second, 0))
            self._raise(second, parts, is_express=second in express)
        return self.known.of(entries)

    def after_throttle(
        self, seconds: Iterable[int], *, express: Collection[int] = ()
    ) -> dict[int, Header]:
        """The same for seconds in which DynamoDB throttled a write. Such a second is treated as
        crowded."""
        seconds = set(seconds)
        self.known.keep(self.headers.read(seconds))
        for second in seconds:
            parts = max(_CROWDED_PARTS, self.known.one(second).parts)
            self._raise(second, parts, is_express=second in express)
        return self.known.of(seconds)

    def _raise(self, second: int, parts: int, *, is_express: bool) -> None:
        known = self.known.one(second)
        wanted = known.grown(parts, is_express=is_express)
        if wanted != known:
            current = self.headers.raise_to(second, wanted.shards, is_express=wanted.is_express)
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
    # As far as the process knows it. None: there is no express queue.
    priority_of: PriorityOfBusiness | None = None
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
        placement = replace(placement, urgent=self._urgent(wanted))
        reserve(_seconds(placement, wanted), express=self._express(placement, wanted))
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

    def addresses(self, windows: Sequence[Window], *, is_throttled: bool = False) -> list[Address]:
        """The addresses of entries that are written now for the starts of these windows."""
        wanted = [(window, b"") for window in windows]
        placement = self.with_shards(self.placement(), wanted, is_throttled=is_throttled)
        return [
            placement.address(window.due_ms, self.random_bytes(), is_high=placement.is_high(window))
            for window in windows
        ]

    def due_ms(self, window: Window, tolerances: Tolerances = NO_TOLERANCES) -> int:
        """The instant that a task with this window gets, as far as this process knows crowded
        seconds. Nothing is read or reserved."""
        placement = Placement(now_ms=self._now_ms(), lead_ms=self.lead_ms, tolerances=tolerances)
        placement = self._with_known(placement, [placement.shared_second(window)])
        return placement.due_ms(window, self.random_bytes())

    def _with_known(self, placement: Placement, seconds: Iterable[int]) -> Placement:
        known = self.reserve_shards.known.of(seconds)
        return replace(
            placement,
            shards={second: header.shards for second, header in known.items()},
            express=tuple(sorted(second for second, one in known.items() if one.is_express)),
        )

    def _urgent(self, wanted: Iterable[Wanted]) -> tuple[str, ...]:
        """The businesses of high priority among those whose tasks do not say theirs."""
        if self.priority_of is None:
            return ()
        names = {window.biz_type for window, _ in wanted if window.priority is None}
        return tuple(name for name in sorted(names) if self.priority_of(name) is Priority.HIGH)

    def _express(self, placement: Placement, wanted: Iterable[Wanted]) -> set[int]:
        if self.priority_of is None:
            return set()
        high = [(window, token) for window, token in wanted if placement.is_high(window)]
        return set(_seconds(placement, high))

    def is_express(self, task: Task) -> bool:
        """Whether its entries go to express shards."""
        if self.priority_of is None:
            return False
        return (task.priority or self.priority_of(task.biz_type)) is Priority.HIGH

    def put(self, task: Task, instant_ms: int) -> Address:
        """If the write succeeded and its answer was lost, the entry stays, and no home names it."""
        window = task.window_at(instant_ms)
        (entry,) = self.addresses([window])
        try:
            self.tasks.put_entry(entry, task.home)
        except Throttled:
            (entry,) = self.addresses([window], is_throttled=True)
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
        """The messages of the pages that are not announced yet, as early as they are needed. That
        of the first shard is the message of all but the express shards."""
        now_ms = self._now_ms()
        first_ms: dict[PageMessage, int] = {}
        for entry in entries:
            if timing.is_near(entry.second, now_ms, self.lead_ms, timing.AHEAD_MS):
                is_express = self._is_express(entry)
                page = PageMessage(
                    entry.second, entry.shard if is_express else 0, express=is_express
                )
                first_ms.setdefault(page, entry.instant_ms)
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

    def _is_express(self, entry: Address) -> bool:
        header = self.reserve_shards.known.one(entry.second)
        return self.priority_of is not None and header.is_express_shard(entry.shard)

    def _naming(self, entries: Iterable[Address], size: int) -> Announcements:
        """Messages that name these entries, which are in order."""
        messages: dict[DirectMessage | PageMessage, int] = {}
        for second, group in groupby(entries, key=lambda entry: entry.second):
            kinds: dict[bool, list[Address]] = {}
            for entry in group:
                kinds.setdefault(self._is_express(entry), []).append(entry)
            for is_express, ones in kinds.items():
                for some in chunks(ones, size):
                    names = tuple(entry.name for entry in some)
                    message = DirectMessage(second, names, express=is_express)
                    messages[message] = some[0].instant_ms
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
