"""`make soak TASKS=n SEED=s`: prints what came of it, and fails if a promise was broken."""

import argparse
import os
import sys
import time

from tests.simulation.soak import TASKS_PER_SECOND, Soak, soaked


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tasks", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--per-second", type=float, default=TASKS_PER_SECOND)
    options = parser.parse_args()
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ.update(
        AWS_ACCESS_KEY_ID="testing",
        AWS_SECRET_ACCESS_KEY="testing",
        AWS_DEFAULT_REGION="us-east-1",
    )
    began = time.monotonic()
    soak = Soak(options.tasks, options.seed, tasks_per_second=options.per_second)
    report, faults, seconds = soaked(soak)
    print(f"{options.tasks} tasks, seed {options.seed}")
    print(f"created {report.created}, as clients know; in the wheel at the end:")
    print("  " + ", ".join(f"{n} {status}" for status, n in sorted(report.by_status.items())))
    print(f"calls {report.calls}, of these repeats after a delivery {report.repeated}")
    print(f"largest lateness {report.largest_lateness_ms / 1000:.1f} s")
    print(f"lost {len(report.lost)}, early {len(report.early)}, ", end="")
    print(f"called after a cancel {len(report.called_after_cancel)}, ", end="")
    print(
        f"repeated for no reason {len(report.unexplained)}, untrue {len(report.untrue)}, ", end=""
    )
    print(f"in no honest state {len(report.dishonest)}")
    print("faults: " + ", ".join(f"{n} {name}" for name, n in faults.injected.most_common()))
    print(f"{seconds:.0f} s of virtual time in {time.monotonic() - began:.0f} s")
    for each in report.broken:
        print(each)
    sys.exit(bool(report.broken))


if __name__ == "__main__":
    main()
