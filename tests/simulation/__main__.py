"""`make soak TASKS=n SEED=s`: prints what came of it, and fails if a promise was broken.

Several worlds share the tasks, each a service of its own in a process of its own, the first with
this seed, the next with the following one: each can be replayed alone.
"""

import argparse
import os
import sys
import time
from functools import partial

from tests.simulation.faults import Faults
from tests.simulation.soak import TASKS_PER_SECOND, Soak, soaked_on_core
from tests.simulation.verdict import Report
from tests.simulation.worlds import in_worlds

TASKS_AN_OPERATION = 100
SHORT_DAY_SECONDS = 1_200  # a task that has ended is kept for so long


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tasks", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--per-second", type=float, default=TASKS_PER_SECOND)
    parser.add_argument("--worlds", type=int, default=1)
    parser.add_argument("--day", type=int, default=SHORT_DAY_SECONDS)
    options = parser.parse_args()
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ.update(
        AWS_ACCESS_KEY_ID="testing",
        AWS_SECRET_ACCESS_KEY="testing",
        AWS_DEFAULT_REGION="us-east-1",
    )
    soak = partial(
        Soak,
        options.tasks // options.worlds,
        tasks_per_second=options.per_second / options.worlds,
        day_seconds=options.day,
        operations=options.tasks // options.worlds // TASKS_AN_OPERATION,
    )
    soaks = [soak(options.seed + number) for number in range(options.worlds)]
    began = time.monotonic()
    results = in_worlds(soaked_on_core, soaks, range(options.worlds))
    for one, (report, faults, seconds) in zip(soaks, results, strict=True):
        show(one, report, faults, seconds)
    print(f"all of it in {time.monotonic() - began:.0f} s")
    sys.exit(any(report.broken for report, _, _ in results))


def show(soak: Soak, report: Report, faults: Faults, seconds: float) -> None:
    pace = f"{soak.tasks_per_second:g} a second"
    print(f"{soak.tasks} tasks, seed {soak.seed}, {pace}")
    messages = report.messages
    print(
        f"  created {report.created}, as clients know, {messages.tasks} of these by messages; ",
        end="",
    )
    print("in the wheel at the end: ", end="")
    print(", ".join(f"{n} {status}" for status, n in sorted(report.by_status.items())))
    letters = ", ".join(f"{n} {problem}" for problem, n in messages.letters.most_common())
    print(
        f"  messages {messages.copies}, of these {messages.done} done; dead letters: {letters}; ",
        end="",
    )
    print(f"{messages.letters_again} of these for a second time")
    print(f"  calls {report.calls}, of these repeats after a delivery {report.repeated}, ", end="")
    print(f"ends of long work {report.completed}, ", end="")
    print(f"bulk operations {report.operations}, ", end="")
    print(f"redriven by two at once {report.redriven_by_two}")
    print(f"  largest lateness {report.largest_lateness_ms / 1000:.1f} s, ", end="")
    print(f"the sweep at most {report.sweep_behind_seconds:.0f} s behind")
    print(f"  first calls that wait for nothing {report.first_calls}, ", end="")
    print(f"at most {report.found_after_seconds:.0f} s late, found too late ", end="")
    print(len(report.found_late))
    print(f"  lost {len(report.lost)}, early {len(report.early)}, ", end="")
    print(f"called after a cancel {len(report.called_after_cancel)}, ", end="")
    print(f"repeated for no reason {len(report.unexplained)}, ", end="")
    print(f"untrue {len(report.untrue)}, ", end="")
    print(f"disobeyed {len(report.disobeyed)}, left at work {len(report.left_at_work)}, ", end="")
    print(f"deleted wrongly {len(report.deleted_wrongly)}, ", end="")
    print(f"inconsistent {len(report.inconsistent)}, not once {len(report.not_once)}")
    print(
        f"  of messages: lost {len(messages.lost)}, made twice {len(messages.made_twice)}, ", end=""
    )
    print(f"misjudged {len(messages.misjudged)}")
    waits = ", ".join(f"{n} {reason}" for reason, n in report.reasons.most_common())
    print(f"  seen to wait: {waits or 'none'}, for no reason {len(report.silent)}")
    print("  faults: " + ", ".join(f"{n} {name}" for name, n in faults.injected.most_common()))
    print(f"  {seconds:.0f} s of virtual time")
    for each in report.broken:
        print(f"  {each}")


if __name__ == "__main__":
    main()
