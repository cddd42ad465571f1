"""The lateness of a quick business while callbacks of another one take ten seconds: with the slow
lane and without it, with priorities of the other one. Then that of the other one alone.

On virtual time with the real handlers, so it measures waits, not the speed of the code.

make bench-slow-lane
"""

import logging

from duewheel.rules.businesses.lanes import BusinessLane
from duewheel.rules.priority import Priority
from tests.simulation.neighbours import (
    CALLBACK_SECONDS,
    CAN_TAKE,
    LINES,
    NOTIFIERS,
    SLOW_NOTIFIERS,
    TIMES,
    neighbours,
)

SECONDS = 60
WAYS: dict[str, tuple[BusinessLane | None, Priority]] = {  # lane, and priority of the slow one
    "without": (BusinessLane.MAIN, Priority.NORMAL),
    "without, and the slow one is `low`": (BusinessLane.MAIN, Priority.LOW),
    "without, and the slow one is `high`": (BusinessLane.MAIN, Priority.HIGH),
    "with": (None, Priority.NORMAL),
}


def main() -> None:
    logging.disable(logging.CRITICAL)
    print(
        f"A quick business has a task a second for {SECONDS} s, a slow one {TIMES * CAN_TAKE:.0f} "
        f"a second whose callbacks take {CALLBACK_SECONDS} s. {NOTIFIERS} notifiers in the main "
        f"lane and {SLOW_NOTIFIERS} in the slow one have {LINES} calls in flight each: together "
        f"the former can take {CAN_TAKE:.0f} of the slow calls a second.\n"
    )
    print("| slow lane | quick calls late | median lateness | the latest by |")
    print("|---|---|---|---|")
    for name, (lane, priority) in WAYS.items():
        lived = neighbours(lane, SECONDS, slow_is=priority)
        late_ms = sorted(lived.late_ms["quick"])
        if len(late_ms) != SECONDS:
            raise AssertionError("not everything was called")
        late = sum(ms > 0 for ms in late_ms)
        middle, most = late_ms[len(late_ms) // 2] / 1000, late_ms[-1] / 1000
        print(f"| {name} | {late} of {SECONDS} | {middle:.1f} s | {most:.1f} s |", flush=True)
    print("\nThe slow one alone:\n")
    print("| slow lane | median lateness | the latest by |")
    print("|---|---|---|")
    for name in ("without", "with"):
        late_ms = sorted(neighbours(WAYS[name][0], SECONDS, is_alone=True).late_ms["slow"])
        middle, most = late_ms[len(late_ms) // 2] / 1000, late_ms[-1] / 1000
        print(f"| {name} | {middle:.1f} s | {most:.1f} s |", flush=True)


if __name__ == "__main__":
    main()
