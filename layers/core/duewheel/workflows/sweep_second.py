"""See to it that nothing of one second is lost: judge it once more, and act on the verdict."""

from collections.abc import Sequence

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.log import logger, report_unreadable
from duewheel.rules.addresses import Address, is_slow_page
from duewheel.rules.messages import PageMessage
from duewheel.rules.page_lease import PageLease, is_absurd
from duewheel.rules.sweep_verdict import SeenEntry, Verdict, judge_slice
from duewheel.stores.pages import PageStore
from duewheel.stores.tasks import TaskStore
from duewheel.workflows.come_up_again import ComeUpAgain
from duewheel.workflows.hand_over import HandOver
from duewheel.workflows.read_second import WholeSecond
from duewheel.workflows.reenter import Reenter


class SweepSecond(Struct, frozen=True):
    clock: Clock
    tasks: TaskStore
    pages: PageStore
    hand_over: HandOver
    reenter: Reenter
    come_up_again: ComeUpAgain
    page_size: int

    def __call__(self, whole: WholeSecond) -> bool:
        """True when the second is finished and the sweep pointer may pass it."""
        self._set_damage_aside(whole)
        verdicts = self.judge(whole)
        finished = not any(verdict.keeps_waiting for verdict in verdicts)
        for verdict in verdicts:
            # Whoever was faster may have left the old entry named: look again next time.
            finished = self._rescue(whole.second, verdict.owed) and finished
            finished = self._put_off(verdict) and finished
            for lease, owed in verdict.take_apart:
                self._take_apart(whole.second, lease, owed)
            for lease, message in verdict.resend:
                self._resend(lease, message)
        return finished

    def is_held_by_slow_lane(self, whole: WholeSecond) -> bool:
        return any(is_slow_page(page) for one in self.judge(whole) for page in one.waits_for)

    def put_off_slow_pages(self, whole: WholeSecond) -> None:
        """Nothing but that, of a second whose turn has not come yet."""
        for verdict in self.judge(whole):
            self._put_off(verdict)

    def judge(self, whole: WholeSecond) -> list[Verdict]:
        seen = [whole.seen_in(shard) for shard in range(len(whole.slices))]
        present = {entry.address for entries in seen for entry in entries}
        return [
            judge_slice(
                whole.second,
                shard,
                seen[shard],
                whole.slices[shard].leases,
                present=present.__contains__,
                now_ms=self.clock.now_ms(),
                page_size=self.page_size,
            )
            for shard in range(len(seen))
        ]

    def _set_damage_aside(self, whole: WholeSecond) -> None:
        """What cannot be read is reported, and passed: it holds up nobody else. A lease is only
        in the way, so that goes, and its page is begun anew."""
        now_ms = self.clock.now_ms()
        damaged = list(whole.damaged)
        for part in whole.slices:
            absurd = [lease for lease in part.leases.values() if is_absurd(lease, now_ms)]
            for lease in absurd:
                del part.leases[lease.page]
                damaged.append(self.pages.as_unreadable(lease))
        for one in damaged:
            report_unreadable(one)
            if self.pages.is_lease(one):
                self.pages.forget(one)
        for entry, reentry in whole.homeless.items():
            if reentry.is_orphan(now_ms):
                logger.error(
                    "the task of an entry is gone",
                    action="home-gone",
                    entry=entry.name,
                    task_id=reentry.home.task_id,
                )

    def _rescue(self, second: int, owed: Sequence[SeenEntry], *, one_by_one: bool = False) -> bool:
        """Give each owed task a new entry; False when somebody changed one meanwhile. One that
        cannot be read whole is passed: it would come up as unreadable again and again."""
        homes = [seen.home for seen in owed if seen.home is not None]
        readable = self.tasks.get_many(home.home for home in homes)
        homes = [home for home in homes if home.home in readable]
        entries: list[Address] = []
        for home in homes:
            entry = self.reenter.put(home.home, home.next_ms)
            if self.tasks.name_entry(home, entry):
                entries.append(entry)
        self.reenter.announce(entries, one_by_one=one_by_one)
        if entries:
            logger.warning("tasks rescued", action="rescued", second=second, count=len(entries))
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
