"""20,000 tasks on one second, on tables with AWS's limits: with the shards that the second gets,
and with a fixed single one.

On virtual time with the real handlers, 10 ms for every AWS call, and a governor that enforces AWS's
limits (bench/limits.py). It shows the effect of those limits, not the speed of the code.

    make bench-crowd
"""

import logging
from contextlib import nullcontext

from bench.limits import NEW_TABLE_WRITE_UNITS, PARTITION_WRITE_UNITS, TABLE_WRITE_UNITS
from tests.simulation.crowd import (
    Crowd,
    check_nothing_is_lost_or_repeated,
    crowded,
    one_fixed_shard,
)

TASKS, SINGLES = 20_000, 4_000
CASES = {
    f"{TABLE_WRITE_UNITS.value:,.0f} writes a second, by default": (
        Crowd(TASKS, TABLE_WRITE_UNITS.value),
        nullcontext,
    ),
    f"{NEW_TABLE_WRITE_UNITS.value:,.0f} writes a second, a new table": (
        Crowd(TASKS, NEW_TABLE_WRITE_UNITS.value),
        nullcontext,
    ),
    "by default, and one shard that stays": (
        Crowd(TASKS, TABLE_WRITE_UNITS.value),
        one_fixed_shard,
    ),
    f"by default, {SINGLES:,} created one by one": (
        Crowd(SINGLES, TABLE_WRITE_UNITS.value, clients=32, singles=SINGLES),
        nullcontext,
    ),
}


def main() -> None:
    logging.disable(logging.CRITICAL)
    print(
        f"{TASKS:,} tasks on one second, created in batches by 8 clients. A partition takes "
        f"{PARTITION_WRITE_UNITS.value:,.0f} writes a second.\n"
    )
    print("| the table takes | created within | settled within | slices | largest | refused |")
    print("|---|---|---|---|---|---|")
    for name, (crowd, with_shards) in CASES.items():
        with with_shards():
            came = crowded(crowd)
        check_nothing_is_lost_or_repeated(came, crowd.tasks)
        print(
            f"| {name} | {came.created_seconds:.1f} s | {came.settled_seconds:.1f} s "
            f"| {len(came.by_shard)} | {max(came.by_shard.values()):,} "
            f"| {came.refused.total():,} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
