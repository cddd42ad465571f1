"""Sweep one second: judge each slice, and act on the verdict, so that no task is lost.

A page that the slow lane has not begun is closed, on condition that it is still not begun, and its
tasks are postponed; its message is dropped afterwards.
"""

from collections.abc import Callable, Sequence

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.log import logger, report_unreadable
from duewheel.rules.delivery.page_lease import PageLease, is_implausible
from duewheel.rules.sweep.minute_statistics import SeenTasks
from duewheel.rules.sweep.resends import Unbegun, has_room
from duewheel.rules.sweep.verdict import HomeState, SeenEntry, Verdict, Waiting, judge_slice
from duewheel.rules.tasks.task import PostponedBy
from duewheel.rules.wheel.addresses import Address, is_passed_on
from duewheel.rules.wheel.open_places import Why
from duewheel.stores.delivery.page_leases import PageLeaseStore
from duewheel.stores.tasks.keys import LeftKeys
from duewheel.stores.tasks.tasks import TaskStore
from duewheel.workflows.sweep.read_second import ReadSecond, SliceOfSecond
from duewheel.workflows.sweep.rescue import Rescue
from duewheel.workflows.tasks.reschedule import Reschedule
from duewheel.workflows.wheel.send_messages import MessageSender


class PostponePage(Struct, frozen=True):
    clock: Clock
    tasks: TaskStore
    pages: PageLeaseStore
    reschedule: Reschedule

    def __call__(self, page: PageLease, homes: Sequence[HomeState]) -> bool:
        """False if the page was begun, or a task changed since it was judged: judge it again. A
        task that cannot be read whole is skipped, as everywhere in the sweep."""
        if not self.pages.close_unbegun(page, self.clock.now_ms()):
            return False
        read = self.tasks.get_many(home.home for home in homes)
        found = [(read[home.home], home) for home in homes if home.home in read]
        judged = [task for task, home in found if task.version == home.version]
        done = self.reschedule.postponed(judged, PostponedBy.SLOW_LANE)()
        logger.warning(
            "page of the slow lane postponed",
            action="slow-late",
            second=page.second,
            page=page.page,
            count=sum(done),
        )
        return all(done) and len(judged) == len(found)


Unfinished = tuple[str, Why]  # the first page that is not finished, or '', and why


class SweptSecond:
    """The finished slices of a second, until the second is finished and counted."""

    def __init__(self, second: int, since_ms: int = 0, counted: int = 0) -> None:
        self.second = second
        self.since_ms = since_ms  # of its first read
        self.counted = counted  # the homes in the shards before this one are counted
        self.size = 0
        self.shards = 1
        self.finished: set[int] = set()
        self.has_header = False
        self.was_done = False
        self.was_made_good = False
        self.met = SeenTasks(second)
        self.reentries: list[Address] = []

    @property
    def missing(self) -> int | None:
        """The next shard to read. Shard 0 has the number of shards. Of counted shards only the
        re-entries are read, at the end."""
        ordered = (0, *range(self.counted, self.shards), *range(self.counted))
        return next((n for n in ordered if n not in self.finished), None)

    @property
    def reached(self) -> int:
        """The first shard from `counted` on that is not in it."""
        following = range(self.counted, self.shards)
        return next((n for n in following if n not in self.finished), self.shards)

    def add(self, part: SliceOfSecond) -> None:
        self.finished.add(part.shard)
        self.size += part.size
        self.has_header |= part.whole.has_header
        self.shards = max(self.shards, part.whole.shards)
        self.was_made_good |= part.was_made_good
        # A notifier need not mark a page whose tasks it has delivered.
        self.was_done |= any(lease.done or lease.tries for lease in part.whole.leases.values())
        self.met.add(part.shard, part.homes)
        self.reentries += part.whole.reentries


class SweepSecond(Struct, frozen=True, kw_only=True):
    clock: Clock
    read_second: ReadSecond
    tasks: TaskStore
    pages: PageLeaseStore
    message_sender: MessageSender
    rescue: Rescue
    postpone_page: PostponePage
    page_size: int

    def finish(
        self,
        part: SliceOfSecond,
        passed: int,
        is_open: Callable[[Address], bool],
        resent: list[Unbegun],
    ) -> Unfinished | None:
        """None if the slice is finished: no task of it can be lost any more. Pages to resend are
        added to `resent`: how many are resent depends on the whole run."""
        self._set_damage_aside(part)
        verdict = self.judge(part, passed, is_open)
        # The other writer may have left the old entry named: read it again next time.
        is_rescued = self.rescue(part.second, verdict.due)
        is_put_off = self._reschedule(verdict)
        for lease, due in verdict.take_apart:
            if lease.tries:
                self._take_apart(lease, due)
            elif has_room(resent):
                resent.append(Unbegun(lease, due=tuple(due)))
        resent += [
            Unbegun(lease, message, businesses=verdict.owners[lease.page])
            for lease, message in verdict.resend
        ]
        unfinished = list(verdict.unfinished)
        if not (is_rescued and is_put_off):
            unfinished.append(("", Why.CHANGED))
        if unfinished:
            return unfinished[0]
        LeftKeys(self.tasks).release(part.all_homes, part.second)
        return None

    def judge(
        self, part: SliceOfSecond, passed: int, is_open: Callable[[Address], bool]
    ) -> Verdict:
        entries = part.entries
        here = {entry.address for entry in entries}
        elsewhere = {
            seen.home.entry
            for seen in entries
            if seen.is_home and seen.home and seen.home.entry not in here
        }
        existing = self.tasks.existing(
            entry for entry in elsewhere if entry.second <= passed and is_open(entry)
        )
        return judge_slice(
            part.second,
            part.shard,
            entries,
            part.whole.leases,
            waiting=Waiting(passed, is_open, (here | existing).__contains__),
            now_ms=self.clock.now_ms(),
            page_size=self.page_size,
        )

    def send_again(self, page: Unbegun) -> None:
        if page.message is None:
            self._take_apart(page.lease, page.due)
        elif self.pages.note_resend(page.lease, self.clock.now_ms()):
            self.message_sender.send_or_raise(page.message)
            logger.warning(
                "page sent again",
                action="resent",
                second=page.lease.second,
                shard=page.lease.shard,
                page=page.lease.page,
                times=page.lease.resends + 1,
            )

    def _set_damage_aside(self, part: SliceOfSecond) -> None:
        """An unreadable item is reported and skipped: it delays nothing else. An unreadable lease
        is deleted, and its page is started again."""
        now_ms = self.clock.now_ms()
        damaged = list(part.damaged)
        leases = part.whole.leases
        for lease in [lease for lease in leases.values() if is_implausible(lease, now_ms)]:
            del leases[lease.page]
            damaged.append(self.pages.as_unreadable(lease))
        for one in damaged:
            report_unreadable(one)
            if self.pages.is_lease(one):
                self.pages.forget(one)
        for entry, reentry in part.homeless.items():
            if reentry.is_orphan(now_ms):
                logger.error(
                    "task missing for entry",
                    action="home-gone",
                    entry=entry.name,
                    task_id=reentry.home.task_id,
                )

    def _reschedule(self, verdict: Verdict) -> bool:
        """False if another write came first: judge the slice again next time."""
        done = True
        for lease, due in verdict.postponed:
            homes = [seen.home for seen in due if seen.home is not None]
            done = self.postpone_page(lease, homes) and done
        return done

    def _take_apart(self, lease: PageLease, due: Sequence[SeenEntry]) -> None:
        """Close the page, so that no run begins it any more, and give its due tasks new entries. A
        page that was begun so often without success has a task that crashes its notifier: each task
        gets an entry of its own, so that the others are not delayed. The entries behind them become
        the next page. A sweeper that crashes in between leaves tasks in a finished page."""
        end = None if is_passed_on(lease.page) else lease.end or due[-1].address.place
        if not self.pages.close(lease, end, self.clock.now_ms()):
            return  # a notifier has begun it meanwhile
        logger.error(
            "page taken apart",
            action="taken-apart",
            second=lease.second,
            shard=lease.shard,
            page=lease.page,
            count=len(due),
        )
        self.rescue(lease.second, due, one_by_one=lease.tries > 0)
