"""Carry out a request of CloudFormation on the timer of a resource of a stack.

CloudFormation and Lambda may repeat any request, also while its first run is at work: a put finds
its timer by the name, and a delete by the id that the put answered with. So a late delete never
deletes a timer that was made later by the same name. A timer of another owner is neither changed
nor deleted.
"""

from collections.abc import Callable
from typing import TypeVar

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.log import logger
from duewheel.rules.access.stacks import check_permitted, permit_of_stack
from duewheel.rules.callbacks.allowed_targets import AllowedTargets
from duewheel.rules.preconditions import Precondition
from duewheel.rules.refusals import Unavailable, UnknownTimer, VersionMismatch
from duewheel.rules.timers import stack_resource
from duewheel.rules.timers.stack_resource import StackRequest
from duewheel.rules.timers.timer import Timer
from duewheel.stores.dynamodb import is_of_aws
from duewheel.stores.tasks.tasks import TaskStore
from duewheel.workflows.timers.read_timers import shown_timers
from duewheel.workflows.timers.timer_by_name import TimerByName

# No further try begins so long before the run ends. It is longer than one try takes with all tries
# of the SDK, so that there is always time for the answer.
TRY_MS_MAX = 120_000
_FIRST_PAUSE_MS = 200
_PAUSE_MS_MAX = 5_000

T = TypeVar("T")


class Carried(Struct, frozen=True):
    """The answer, and the timer that was made, changed, found as it should be, or deleted."""

    answer: bytes
    timer: Timer | None = None


class StackTimer(Struct, frozen=True, kw_only=True):
    clock: Clock
    timer_by_name: TimerByName
    tasks: TaskStore
    businesses: tuple[str, ...]  # as the parameter lists them
    allowed: AllowedTargets

    def __call__(self, request: StackRequest, deadline_ms: int) -> Carried:
        work = self._delete if request.kind == "Delete" else self._put
        return self._in_time(lambda: work(request), deadline_ms)

    def _put(self, request: StackRequest) -> Carried:
        named = stack_resource.definition(request, self.allowed)
        self._check_permitted(request, named.biz_type)

        def admit(timer: Timer) -> None:
            stack_resource.check_taken(request, timer)

        put = self.timer_by_name.put(named, Precondition(), by=request.stack.caller, admit=admit)
        (shown,) = shown_timers(self.clock, self.tasks, [put.timer])
        return Carried(stack_resource.made(request, put.timer, shown.next_second), put.timer)

    def _delete(self, request: StackRequest) -> Carried:
        while (timer := self._timer_of(request)) is not None:
            self._check_permitted(request, timer.biz_type)
            as_read = Precondition(version=timer.version)
            try:
                self.timer_by_name.change.delete(timer.timer_id, as_read, by=request.stack.caller)
            except UnknownTimer:
                break
            except VersionMismatch:
                continue  # its owner may be another by now
            return Carried(stack_resource.gone(request), timer)
        return Carried(stack_resource.gone(request))

    def _timer_of(self, request: StackRequest) -> Timer | None:
        """The timer that the resource has made. A create whose answer was lost has made one of
        which CloudFormation does not know the id."""
        timers, name = self.timer_by_name.change.timers, stack_resource.name_in(request)
        found: list[Timer | None] = []
        if request.timer_id is not None:
            found = [timers.read(request.timer_id)]
        elif name is not None:
            found = [*timers.named(*name)]
        for timer in filter(None, found):
            if stack_resource.is_its_timer(request, timer):
                return timer
            logger.warning(
                "timer kept: it is not the stack's",
                action="stack-timer-kept",
                timer_id=timer.timer_id,
                stack=request.stack.name,
                resource=request.resource,
            )
        return None

    def _check_permitted(self, request: StackRequest, biz_type: str) -> None:
        account = self.allowed.scope.account
        check_permitted(permit_of_stack(request.stack, self.businesses, account), biz_type)

    def _in_time(self, work: Callable[[], T], deadline_ms: int) -> T:
        """Repeats what AWS refuses, or does not answer, as long as there is time."""
        pause_ms = _FIRST_PAUSE_MS
        while True:
            try:
                return work()
            except Exception as error:
                is_late = self.clock.now_ms() + pause_ms > deadline_ms - TRY_MS_MAX
                if is_late or not (isinstance(error, Unavailable) or is_of_aws(error)):
                    raise
            self.clock.sleep(pause_ms / 1000)
            pause_ms = min(2 * pause_ms, _PAUSE_MS_MAX)
