"""Writes the results: the tables into docs/performance.md, figures and plots into docs/bench.

Invariant: of docs/performance.md only the part between the two marks is rewritten.
"""

import json
from dataclasses import asdict
from pathlib import Path

from bench.one_machine import plots
from bench.one_machine import tables as tables_of
from bench.one_machine.processes import ROOT
from bench.one_machine.results import Results

DOCS = ROOT / "docs"
BEGIN = "<!-- what follows is written by `make bench` -->"
END = "<!-- until here -->"


def tables(results: Results) -> str:
    return tables_of.everything(results)


def write(results: Results, docs: Path = DOCS) -> None:
    folder = docs / "bench"
    folder.mkdir(exist_ok=True)
    figures = json.dumps(asdict(results), indent=1, sort_keys=True)
    (folder / "one-machine.json").write_text(figures + "\n")
    for name, svg in drawn(results).items():
        (folder / f"{name}.svg").write_text(svg)
    page = docs / "performance.md"
    page.write_text(between_the_marks(page.read_text(), tables(results)))


def drawn(results: Results) -> dict[str, str]:
    steady = {r["contender"]: r["curve_ms"] for r in results.of("steady", wait_ms=0)}
    made = {"lateness-steady": plots.lateness("Lateness at steady load", steady)}
    for tasks in (1_000, 10_000):
        bursts = {
            r["contender"]: r["curve_ms"] for r in results.of("burst", wait_ms=0, tasks=tasks)
        }
        title = f"Lateness of {tasks:,} tasks due in the same second"
        made[f"lateness-{tasks}"] = plots.lateness(title, bursts)
    made["created"] = plots.bars("Tasks created a second, one client", results.creation_rates())
    return made


def between_the_marks(page: str, text: str) -> str:
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise SystemExit(f"docs/performance.md lacks the marks {BEGIN} and {END}")
    return f"{before}{begin}\n\n{text}\n{end}{after}"
