"""The parts that find tasks and change them, each by a call or many by an operation."""

from concurrent.futures import ThreadPoolExecutor

from duewheel.stores.tasks.indexes import READERS as DEAD_READERS
from duewheel.stores.tasks.indexes import DeadIndex, ListIndex
from duewheel.wiring.creating import admission, change_pending, order
from duewheel.wiring.process import clock, dynamodb, once, origin, settings
from duewheel.wiring.wheel import entry_writer, keys, tasks
from duewheel.workflows.tasks.change_task import ChangeTask, PauseTask
from duewheel.workflows.tasks.list_tasks import READERS, TaskWalk
from duewheel.workflows.tasks.redrive import RedriveTask


@once
def change_task() -> ChangeTask:
    return ChangeTask(change_pending(), admission())


@once
def pause_task() -> PauseTask:
    return PauseTask(change_pending())


@once
def redrive_task() -> RedriveTask:
    return RedriveTask(
        clock=clock(),
        tasks=tasks(),
        keys=keys(),
        keep_order=order(),
        admission=admission(),
        entry_writer=entry_writer(),
    )


@once
def list_index() -> ListIndex:
    config = settings()
    return ListIndex(dynamodb(), config.wheel_table, config.buckets)


@once
def task_walk() -> TaskWalk:
    origin()  # with other BUCKETS the index would name homes that do not exist
    return TaskWalk(
        clock=clock(),
        index=list_index(),
        dead=dead_index(),
        keys=keys(),
        tasks=tasks(),
        readers=ThreadPoolExecutor(READERS),
        is_on=settings().list_index,
    )


@once
def dead_index() -> DeadIndex:
    config = settings()
    readers = ThreadPoolExecutor(DEAD_READERS)
    return DeadIndex(dynamodb(), config.wheel_table, config.buckets, readers)
