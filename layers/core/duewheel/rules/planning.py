"""Planning: how a timer writes its occurrences ahead, through the wheel itself.

A timer that is enabled has a chain: an internal task that comes up before what it has written
runs out, and writes more. Its home is its address for life.
"""

from duewheel.rules.placing import Placing
from duewheel.rules.task import Plan, Task
from duewheel.rules.timer import Timer


def chain_home(timer: Timer, placing: Placing, random_bytes: bytes) -> Task:
    """The task that plans the timer from now on: due at once. The second that has begun is not
    its own any more."""
    home = placing.address(placing.now_ms, random_bytes)
    return Task(
        home=home,
        entry=home,
        biz_type=timer.biz_type,
        due_ms=placing.now_ms,
        next_ms=placing.now_ms,
        callback=None,
        created_ms=placing.now_ms,
        updated_ms=placing.now_ms,
        plan=Plan(timer.timer_id, placing.now_ms // 1000 + 1, timer.numbered),
    )
