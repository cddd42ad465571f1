"""A timer by its name: find it, make it or change it to a whole definition, delete it.

The list of the business says which timer has a name. A definition that the timer has already
changes nothing. Two requests that make the same name at once make one timer.
"""

from msgspec import Struct

from duewheel.rules.names import checked_biz_type, checked_key
from duewheel.rules.preconditions import Precondition
from duewheel.rules.refusals import TimersShareName, Unavailable, UnknownTimer
from duewheel.rules.tasks.effective_callback import check_callback, check_on_outcome
from duewheel.rules.timers.requests import NamedTimer, NewTimer
from duewheel.rules.timers.timer import Timer
from duewheel.rules.timers.updates import BLANK, changed, replaced_rules
from duewheel.stores.dynamodb import Conflict, unavailable_when_throttled
from duewheel.stores.timers.name_claims import NameClaims
from duewheel.workflows.timers.change_timer import ChangeTimer
from duewheel.workflows.timers.create_timer import NOT_STORED, CreateTimer
from duewheel.workflows.tries import until_won

_TRIES = 5


class Put(Struct, frozen=True):
    timer: Timer
    is_new: bool = False


class TimerByName(Struct, frozen=True):
    create: CreateTimer
    change: ChangeTimer
    claims: NameClaims

    def find(self, biz_type: str, name: str) -> Timer:
        timer = self._look(checked_biz_type(biz_type), checked_key(name, "name"))
        if timer is None:
            raise UnknownTimer("The business has no timer of this name.", "name")
        return timer

    def put(
        self,
        named: NamedTimer,
        precondition: Precondition,
        *,
        by: str,
        dry_run: bool = False,
    ) -> Put:
        def try_once() -> Put | None:
            with unavailable_when_throttled(Unavailable(NOT_STORED)):
                try:
                    return self._put(named, precondition, by, dry_run=dry_run)
                except Conflict:
                    return None  # another request makes the name

        return until_won(try_once, _TRIES, Unavailable(NOT_STORED))

    def delete(self, biz_type: str, name: str, precondition: Precondition, *, by: str) -> Timer:
        found = self.find(biz_type, name)
        return self.change.delete(found.timer_id, precondition, by=by)

    def _put(
        self, named: NamedTimer, precondition: Precondition, by: str, *, dry_run: bool
    ) -> Put | None:
        """None if another request was first."""
        latest = self.claims.latest(named.biz_type, named.name)  # before the list is read
        found = self._look(named.biz_type, named.name)
        precondition.check("timer", found.version if found else 0)
        if found is None:
            new = self._new(named)
            if dry_run:
                return Put(new, is_new=True)
            self.create.check_call(named.biz_type)
            made = self.create.store(new, by, self.claims.claim(new, latest))
            return None if made is None else Put(made, is_new=True)

        def altered(timer: Timer, now_ms: int) -> Timer:
            return self._altered(named, timer, now_ms)

        if dry_run:
            return Put(altered(found, self.change.clock.now_ms()))
        try:
            return Put(self.change.alter(found.timer_id, altered, precondition, by))
        except UnknownTimer:
            return None  # deleted or renamed since

    def _look(self, biz_type: str, name: str) -> Timer | None:
        with unavailable_when_throttled():
            found = self.change.timers.named(biz_type, name)
        if len(found) > 1:
            ids = ", ".join(f"timer {one}" for one in sorted(one.timer_id for one in found)[:5])
            raise TimersShareName(f"{ids} have this name. Rename or delete all but one.", "name")
        return found[0] if found else None

    def _new(self, named: NamedTimer) -> Timer:
        now_second = self.create.clock.now_ms() // 1000
        rules = replaced_rules(BLANK, {**named.values, "name": named.name}, now_second)
        new = NewTimer(named.biz_type, rules, named.enabled is not False)
        self.create.check(new)
        return self.create.drawn(new)

    def _altered(self, named: NamedTimer, timer: Timer, now_ms: int) -> Timer:
        if timer.rules.name != named.name:
            raise UnknownTimer("The timer was renamed.", "name")
        values = {**named.values, "name": named.name}
        rules = replaced_rules(timer.rules, values, now_ms // 1000)
        before = timer.rules.callback, timer.rules.payload
        if (rules.callback, rules.payload) != before:
            check_callback(rules.callback, rules.payload, self.change.known.one(timer.biz_type))
        if rules.on_outcome != timer.rules.on_outcome:
            check_on_outcome(rules.on_outcome, self.change.known.one(timer.biz_type))
        enabled = timer.enabled if named.enabled is None else named.enabled
        return changed(timer, rules, enabled=enabled, now_ms=now_ms)
