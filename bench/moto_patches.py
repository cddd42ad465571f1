"""`make bench-patches`: the CPU time of tests that each patch of moto and of the SDK saves.

The quick tests of three folders of workflows run with all patches, and without each one. A patch
with a ratio of about 1 can be deleted.
"""

import os
import resource
import subprocess
import sys

from local.aws import emulator

TESTS = ("tests/workflows/delivery", "tests/workflows/tasks", "tests/workflows/sweep")
QUICK = "not (exhaustive or soak or stack)"
SHORT_WAY = "answered_the_short_way"
ROUNDS = 2


def names() -> list[str]:
    return [patch.__name__ for patch in emulator.PATCHES] + [SHORT_WAY]


def cpu_seconds(left_out: str = "") -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "bench.moto_patches", left_out or "none"]
    subprocess.run(
        command,
        check=True,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "HYPOTHESIS_PROFILE": "quick"},
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def run_tests_without(left_out: str) -> int:
    import pytest

    emulator.PATCHES = [patch for patch in emulator.PATCHES if patch.__name__ != left_out]
    if left_out == SHORT_WAY:
        emulator.answered_the_short_way = lambda request: None
    return pytest.main(["-p", "no:xdist", "-m", QUICK, *TESTS])


def main() -> None:
    taken: dict[str, list[float]] = {name: [] for name in ("", *names())}
    for _ in range(ROUNDS):
        for name, seconds in taken.items():
            seconds.append(cpu_seconds(name))
    best = min(taken[""])
    print(f"all patches: {best:.1f} CPU s, the better of {ROUNDS} rounds")
    for name in names():
        print(f"without {name:32} {min(taken[name]):6.1f} s  {min(taken[name]) / best:.2f} times")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.exit(run_tests_without(sys.argv[1]))
    main()
