"""See to it that nothing of one second is lost: judge it once more, and act on the verdict."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.log import logger, report_unreadable
from duewheel.rules.addresses import Address, is_slow_page
from duewheel.rules.books import Met
from duewheel.rules.messages import PageMessage
from duewheel.rules.page_lease import PageLease, is_absurd
from duewheel.rules.refusals import NewerItem
from duewheel.rules.sweep_bound import is_waited_for
from duewheel.rules.sweep_verdict import HomeState, SeenEntry, Verdict, is_seen_to, judge_slice
from duewheel.stores.left_keys import LeftKeys
from duewheel.stores.pages import PageStore
from duewheel.stores.tasks import TaskStore
from duewheel.workflows.come_up_again import ComeUpAgain
from duewheel.workflows.hand_over import HandOver
from duewheel.workflows.read_second import ReadSecond, SliceOfSecond
from duewheel.workflows.reenter import Reenter

TOLD_AT_ONCE = 100  # task ids in one record of the log


class SweptSecond:
    """What is kept of a second, one slice of which is looked at after the other."""

    def __init__(self, second: int) -> None:
        self.second = second
        self.is_finished = True  # and the sweep pointer may pass it
        self.size = 0
        self.has_header = False
        self.was_made_good = False
        self.waits_for_slow_lane = False
        self.met = Met(second)
        self.reentries: list[Address] = []

    def add(self, part: SliceOfSecond) -> None:
        self.size += part.size
        self.has_header |= part.whole.has_header
        self.was_made_good |= part.was_made_good
        self.met.add(part.homes)
        self.reentries += part.whole.reentries


class SweepSecond(Struct, frozen=True):
    clock: Clock
    read_second: ReadSecond
    tasks: TaskStore
    pages: PageStore
    hand_over: HandOver
    reenter: Reenter
    come_up_again: ComeUpAgain
    page_size: int

    def __call__(self, second: int, may_go_on: Callable[[], bool]) -> SweptSecond:
        """`may_go_on` is asked after each slice; where it says no, the second is not finished."""
        swept = SweptSecond(second)
        for part in self.read_second(second):
            swept.add(part)
            self._set_damage_aside(part)
            swept.is_finished &= not self._waits_for_a_newer_release(part)
            self._act(part, swept)
            if not may_go_on():
                swept.is_finished = False
                break
        return swept

    def put_off_slow_pages(self, second: int) -> None:
        """Nothing but that, of a second whose turn has not come yet."""
        for part in self.read_second(second):
            self._put_off(self.judge(part))

    def judge(self, part: SliceOfSecond) -> Verdict:
        entries = part.entries
        present = self._present(part.second, entries)
        return judge_slice(
            part.second,
            part.shard,
            entries,
            part.whole.leases,
            present=present.__contains__,
            now_ms=self.clock.now_ms(),
            page_size=self.page_size,
        )

    def _act(self, part: SliceOfSecond, swept: SweptSecond) -> None:
        verdict = self.judge(part)
        swept.waits_for_slow_lane |= any(map(is_slow_page, verdict.waits_for))
        # Whoever was faster may have left the old entry named: look again next time.
        is_rescued = self._rescue(part.second, verdict.owed)
        is_put_off = self._put_off(verdict)
        for lease, owed in verdict.take_apart:
            self._take_apart(part.second, lease, owed)
        for lease, message in verdict.resend:
            self._resend(lease, message)
        if not verdict.keeps_waiting:
            LeftKeys(self.tasks).release(part.homes, part.second)
        swept.is_finished &= is_rescued and is_put_off and not verdict.keeps_waiting

    def _present(self, second: int, entries: Sequence[SeenEntry]) -> set[Address]:
        """Where entries stand in this second: those in hand, and those in other slices that a
        home of this one is waiting for."""
        here = {entry.address for entry in entries}
        waiting = (
            e.home for e in entries if e.is_home and e.home and not is_seen_to(e.home, second)
        )
        named = {home.entry for home in waiting}
        return here | self.tasks.standing(entry for entry in named - here if entry.second == second)

    def _set_damage_aside(self, part: SliceOfSecond) -> None:
        """What cannot be read is reported, and passed: it holds up nobody else. A lease is only
        in the way, so that goes, and its page is begun anew."""
        now_ms = self.clock.now_ms()
        damaged = list(part.damaged)
        leases = part.whole.leases
        for lease in [lease for lease in leases.values() if is_absurd(lease, now_ms)]:
            del leases[lease.page]
            damaged.append(self.pages.as_unreadable(lease))
        for one in damaged:
            report_unreadable(one)
            if self.pages.is_lease(one):
                self.pages.forget(one)
        for entry, reentry in part.homeless.items():
            if reentry.is_orphan(now_ms):
                logger.error(
                    "the task of an entry is gone",
                    action="home-gone",
                    entry=entry.name,
                    task_id=reentry.home.task_id,
                )

    def _waits_for_a_newer_release(self, part: SliceOfSecond) -> bool:
        """What that has written is not passed as damage is: it may be at work already."""
        is_there = any(isinstance(one, NewerItem) for one in part.damaged)
        return is_there and is_waited_for(part.second, self.clock.now_ms())

    def _rescue(self, second: int, owed: Sequence[SeenEntry], *, one_by_one: bool = False) -> bool:
        """Give each owed task a new entry; False when somebody changed one meanwhile. One that
        cannot be read whole is passed: it would come up as unreadable again and again."""
        homes = [seen.home for seen in owed if seen.home is not None]
        readable = self.tasks.get_many(home.home for home in homes)
        homes = [home for home in homes if home.home in readable]
        entries: list[Address] = []
        rescued: list[HomeState] = []
        for home in homes:
            entry = self.reenter.put(home.home, home.next_ms)
            if self.tasks.name_entry(home, entry):
                entries.append(entry)
                rescued.append(home)
        self.reenter.announce(entries, one_by_one=one_by_one)
        _tell_rescued(second, rescued)
        return len(entries) == len(homes)

    def _put_off(self, verdict: Verdict) -> bool:
        """False when somebody was faster: look again next time."""
        done = True
        for lease, owed in verdict.put_off:
            homes = [seen.home for seen in owed if seen.home is not None]
            done = self.come_up_again(lease, homes) and done
        return done

    def _resend(self, lease: PageLease, message: PageMessage) -> None:
        if self.pages.note_resend(lease, self.clock.now_ms()):
            self.hand_over.send_surely(message)
            logger.warning(
                "page sent again",
                action="resent",
                second=message.second,
                shard=message.shard,
                page=message.page,
                times=lease.resends + 1,
            )

    def _take_apart(self, second: int, lease: PageLease, owed: Sequence[SeenEntry]) -> None:
        """Something in this page keeps killing its notifier: every task on its own, so that
        the others are not held up. What lies behind them becomes the next page."""
        logger.error(
            "page taken apart",
            action="taken-apart",
            second=second,
            shard=lease.shard,
            page=lease.page,
            count=len(owed),
        )
        self._rescue(second, owed, one_by_one=True)
        self.pages.close(lease, lease.end or owed[-1].address.place, self.clock.now_ms())


def _tell_rescued(second: int, rescued: Sequence[HomeState]) -> None:
    """What the alarm on rescued tasks counts, so it is an error at any level that is logged."""
    for start in range(0, len(rescued), TOLD_AT_ONCE):
        told = rescued[start : start + TOLD_AT_ONCE]
        logger.error(
            "tasks rescued",
            action="rescued",
            second=second,
            count=len(told),
            biz_types=sorted({home.biz_type for home in told}),
            task_ids=[home.home.task_id for home in told],
        )
