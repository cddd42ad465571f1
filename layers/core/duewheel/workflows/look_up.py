"""Read: one task by its id, and the state of the wheel."""

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.rules import settlement
from duewheel.rules.access import ANYTHING, Permit
from duewheel.rules.addresses import address_of_task
from duewheel.rules.load import FORECAST_MINUTES
from duewheel.rules.profile import Profile
from duewheel.rules.refusals import no_such_task
from duewheel.rules.task import Task
from duewheel.rules.wheel_state import WheelState
from duewheel.stores import pointers
from duewheel.stores.loads import LoadStore
from duewheel.stores.pointers import PointerStore
from duewheel.stores.tasks import TaskStore


class LookUp(Struct, frozen=True):
    clock: Clock
    tasks: TaskStore
    pointers: PointerStore
    loads: LoadStore
    origin: int
    buckets: int
    profile: Profile

    def task(self, task_id: str, permit: Permit = ANYTHING) -> Task:
        task = self.tasks.get(address_of_task(task_id))
        if task is None or task.is_internal or settlement.is_gone(task, self.clock.now_ms()):
            raise no_such_task()
        permit.check_found(task.biz_type, no_such_task())
        return task

    def wheel(self) -> WheelState:
        time_pointer = self.pointers.read(pointers.TIME, self.origin)
        sweep_pointer = self.pointers.read(pointers.SWEEP, self.origin)
        now_ms = self.clock.now_ms()
        minute = now_ms // 60_000
        is_led = time_pointer.owner is not None and time_pointer.lease_until_ms > now_ms
        return WheelState(
            now_ms=now_ms,
            profile=self.profile.name,
            buckets=self.buckets,
            origin_second=self.origin,
            time_pointer=time_pointer.position,
            sweep_pointer=sweep_pointer.position,
            open_places=sweep_pointer.open_places,
            leader=time_pointer.owner if is_led else None,
            forecast=self.loads.between(minute, minute + FORECAST_MINUTES),
        )
