"""The local stack, compared with the usual alternatives in Python: same machine, same run, same
sink.

Prints its progress, and at the end the tables; writes them to docs/performance.md, all figures to
docs/bench/one-machine.json and the plots beside it. With names as arguments (`celery`, `duewheel`,
...) only these run, and nothing is written.

    make bench
"""

import argparse
import signal
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench.one_machine import conditions, month_by_clock, outputs
from bench.one_machine.compared_systems import PROCRASTINATE, apscheduler, celery
from bench.one_machine.contenders import Contender
from bench.one_machine.counted_second import counted_seconds
from bench.one_machine.duewheel import Duewheel
from bench.one_machine.figures import NothingCalled
from bench.one_machine.measuring import Measuring, Record
from bench.one_machine.processes import GaveUp
from bench.one_machine.results import Results
from bench.one_machine.sink import receiving

Case = Callable[[Measuring], Record]
HELD_VISIBILITY_SECONDS, HELD_AHEAD_SECONDS = 5, 25
SOON = 15  # instead of an hour, which is too long


def few(measuring: Measuring, wait_ms: int = 0) -> Record:
    return measuring.burst(1_000, wait_ms, batch=False)


def many(measuring: Measuring, wait_ms: int = 0) -> Record:
    return measuring.burst(10_000, wait_ms, batch=measuring.contender.has_batches)


def steady(measuring: Measuring, wait_ms: int = 0) -> Record:
    return measuring.steady(wait_ms)


def held(measuring: Measuring) -> Record:
    return measuring.held_longer_than_visible(HELD_AHEAD_SECONDS, HELD_VISIBILITY_SECONDS)


WITH_WAIT: list[Case] = [partial(case, wait_ms=50) for case in (few, many, steady)]
USUAL: list[Case] = [few, many, steady]
KILL: list[Case] = [Measuring.killed, Measuring.month_ahead]
_KILLED, _LATE = {"VISIBILITY_SECONDS": str(SOON)}, {"ACKS_LATE": "yes"}
_HELD = {"VISIBILITY_SECONDS": str(HELD_VISIBILITY_SECONDS)}

# Each is started again, so that it has no state of an earlier case.
PLAN: list[tuple[str, Contender, list[Case]]] = [
    ("duewheel", Duewheel(), USUAL + WITH_WAIT),
    ("duewheel", Duewheel(), KILL),
    ("local", Duewheel(is_apart=False), [few, month_by_clock.month_by_clock]),
    ("celery", celery(), USUAL),
    ("celery", celery(f"Celery, visible again after {SOON} s", **_KILLED), KILL),
    ("celery", celery("Celery, the same, `acks_late`", **_KILLED, **_LATE), [Measuring.killed]),
    ("celery", celery("Celery", **_HELD), [held]),
    ("procrastinate", PROCRASTINATE, USUAL),
    ("procrastinate", PROCRASTINATE, KILL),
    ("apscheduler", apscheduler(), USUAL),
    ("apscheduler", apscheduler(), KILL),
    ("apscheduler", apscheduler("APScheduler 3, as it comes", MISFIRE="default"), [few]),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    names = list(dict.fromkeys(name for name, _, _ in PLAN))
    parser.add_argument("only", nargs="*", help=f"of {', '.join(names)}")
    only = parser.parse_args().only
    if unknown := set(only) - set(names):
        parser.error(f"there is no {', '.join(sorted(unknown))}")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the started processes end, too
    begun = time.monotonic()

    def say(text: str) -> None:
        seconds = int(time.monotonic() - begun)
        print(f"{seconds // 60:3}:{seconds % 60:02}  {text}", flush=True)

    found = conditions.of_this_machine()
    plan = [(contender, cases) for name, contender, cases in PLAN if not only or name in only]
    records, skipped, failed = run(plan, say)
    say("counting units and requests")
    results = Results(found, records, skipped, counted_seconds())
    print("\n" + outputs.tables(results))
    if failed:
        raise SystemExit("Nothing is written, since not all was measured:\n" + "\n".join(failed))
    if not only:
        outputs.write(results)
        say("written to docs/performance.md and docs/bench/")


def run(
    plan: list[tuple[Contender, list[Case]]], say: Callable[[str], None]
) -> tuple[list[Record], dict[str, str], list[str]]:
    """The results, the systems that were left out with the missing parts, and the errors."""
    records: list[Record] = []
    failed: list[str] = []
    skipped: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as name, receiving(Path(name)) as sink_url:
        Path(name).chmod(0o711)  # a server of another user needs access to it
        for number, (contender, cases) in enumerate(plan):
            if missing := contender.missing():
                skipped[contender.name] = missing
                say(f"{contender.name} IS LEFT OUT: {missing} is not installed")
                continue
            say(f"{contender.name}: {contender.settings}")
            folder = Path(name) / str(number)
            folder.mkdir(mode=0o711)
            try:
                with contender.up(folder) as running:
                    measuring = Measuring(contender, running, sink_url, say)
                    measuring.warm_up()
                    for case in cases:
                        records.append(case(measuring))
            except (GaveUp, NothingCalled) as reason:
                failed.append(f"{contender.name}: {reason}")
                say(f"FAILED: {failed[-1]}")
    return records, skipped, failed


if __name__ == "__main__":
    main()
