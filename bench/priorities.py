"""How late tasks of high priority are beside a flood that a rate limit works off: by the service's
rules for the limit, on simulated time.

make bench-priorities
"""

from collections.abc import Sequence

from duewheel.rules.priority import Priority
from tests.support.limited_business import LimitedBusiness

FLOOD = 3_000  # at one instant
PER_SECOND = 10.0
SECONDS = 240  # with a task each
HIGH, NORMAL, LOW = Priority.HIGH, Priority.NORMAL, Priority.LOW


def main() -> None:
    print(
        f"{FLOOD:,} tasks fall due at one instant, and one more in each of the next {SECONDS} s, "
        f"for a business with {PER_SECOND:g} calls a second.\n"
    )
    print("| the flood | the others | late p50 | p99 | most | the flood ends after |")
    print("|---|---|---|---|---|---|")
    for flood, others in ((NORMAL, NORMAL), (NORMAL, HIGH), (LOW, NORMAL), (LOW, HIGH)):
        late_ms, ends_ms = served(flood, others)
        cells = [late_ms[len(late_ms) * part // 100] / 1000 for part in (50, 99)]
        times = [*cells, late_ms[-1] / 1000, ends_ms / 1000]
        print("| " + " | ".join([flood, others, *(f"{time:.1f} s" for time in times)]) + " |")


def served(flood: Priority, others: Priority) -> tuple[Sequence[int], int]:
    """How late the others were, in ascending order, and when the flood was over."""
    business = LimitedBusiness(PER_SECOND, lambda now_ms: 20)
    due_ms = [1_000 * second for second in range(1, SECONDS + 1)]
    business.owes([0] * FLOOD, flood)
    business.owes(due_ms, others)
    business.works_off()
    called = {number: at_ms for at_ms, number in business.calls}
    late_ms = sorted(called[FLOOD + number] - ms for number, ms in enumerate(due_ms))
    return late_ms, max(called[number] for number in range(FLOOD))


if __name__ == "__main__":
    main()
