"""Searches the model for ways on which a promise breaks.

python -m tests.line.search           every rule on
python -m tests.line.search RULE...   without these, one after the other; `all` for each
"""

import argparse
import sys
import time
from collections.abc import Mapping

from tests.line.scenarios import SCENARIOS, walked
from tests.line.world import ALL_ON, RULES

Found = tuple[str, int, str, list[tuple[int, str]]]  # scenario, seed, what is broken, the way


def found(
    rules: Mapping[str, bool], seconds: float, only: str = "", seed: int = 0
) -> tuple[Found | None, int]:
    """The shortest way that breaks a promise, and how many ways were walked."""
    best: Found | None = None
    names = [name for name in SCENARIOS if only in name]
    until, first = time.monotonic() + seconds, seed
    while time.monotonic() < until and (best is None or time.monotonic() < until - seconds / 2):
        for name in names:
            seed += 1
            broken = walked(name, rules, seed)
            if broken and (best is None or len(broken[1]) < len(best[3])):
                best = name, seed, *broken
    return best, seed - first


def shown(best: Found | None, ways: int) -> str:
    if best is None:
        return f"nothing found on {ways} ways"
    name, seed, why, way = best
    steps = "; ".join(f"{at} s: {step}" for at, step in way)
    return f"{why}\n  scenario '{name}', seed {seed}, {len(way)} steps\n  {steps}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rules", nargs="*")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--only", default="", help="scenarios whose names have this")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    wanted = list(RULES) if options.rules == ["all"] else options.rules
    if not wanted:
        best, ways = found(ALL_ON, options.seconds, options.only, options.seed)
        print(f"with every rule: {shown(best, ways)}")
        sys.exit(best is not None)
    missed = []
    for rule in wanted:
        without = {**ALL_ON, rule: False}
        best, ways = found(without, options.seconds, options.only, options.seed)
        print(f"without '{rule}': {shown(best, ways)}", flush=True)
        missed += [rule] if best is None else []
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
