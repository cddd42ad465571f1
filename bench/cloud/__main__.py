"""How late tasks would be on AWS, by a model that runs the service's rules against AWS's limits.

make model
"""

from bench.cloud import assumptions, capacity_modes, tables


def main() -> None:
    for table in (
        tables.loads,
        tables.knobs_for_a_burst,
        tables.knobs_for_a_steady_load,
        tables.near_tasks,
        tables.announced_tasks,
        tables.priorities,
        tables.limits_of_the_table,
        capacity_modes.table,
        tables.failures,
        tables.sweep,
        assumptions.table,
    ):
        for line in table():
            print(line, flush=True)


if __name__ == "__main__":
    main()
