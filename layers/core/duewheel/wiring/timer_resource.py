"""The parts of the function for timers in templates of CloudFormation."""

from duewheel.targets.http.stack_answer import AnswerStack, connected
from duewheel.wiring.process import clock, once, settings
from duewheel.wiring.timers import timer_by_name
from duewheel.wiring.wheel import tasks
from duewheel.workflows.timers.stack_timer import StackTimer


@once
def stack_timer() -> StackTimer:
    config = settings()
    return StackTimer(
        clock=clock(),
        timer_by_name=timer_by_name(),
        tasks=tasks(),
        businesses=config.timer_resource_businesses,
        allowed=config.allowed_targets,
    )


@once
def answer_stack() -> AnswerStack:
    return AnswerStack(clock(), connected)
