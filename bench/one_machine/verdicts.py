"""Compares the systems by their figures. Pure.

Invariant: both lists have the same criteria, and neither has a difference that is not clear.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bench.one_machine.results import Record, Results

US = "Duewheel"
CLEARLY = 1.2


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    case: str
    records: Mapping[str, Any]
    value: str  # the name of the figure
    unit: str
    is_more_better: bool = False


_BURSTS = {
    "1,000 in one second": {"tasks": 1_000, "wait_ms": 0},
    "10,000 in one second": {"tasks": 10_000, "wait_ms": 0},
}
QUESTIONS = (
    Question("created singly", "burst", {"batch": False}, "created_per_second", "/s", True),
    Question("created in batches", "burst", {"batch": True}, "created_per_second", "/s", True),
    *(
        Question(f"delivered of {name}", "burst", which, "delivered_per_second", "/s", True)
        for name, which in _BURSTS.items()
    ),
    *(
        Question(f"{figure} late, 50 a second", "steady", {"wait_ms": 0}, f"{figure}_ms", " ms")
        for figure in ("p50", "p99")
    ),
    *(
        Question(f"{figure} late, {name}", "burst", which, f"{figure}_ms", " ms")
        for name, which in _BURSTS.items()
        for figure in ("p50", "p99")
    ),
    Question("not called after a kill without help", "killed", {}, "left_alone", ""),
    Question("called twice after a kill", "killed", {}, "repeated", ""),
    Question("last call after a kill", "killed", {}, "last_after_kill_seconds", " s"),
    Question("cancelled, but called", "killed", {}, "cancelled_but_called", ""),
    Question("cancels", "killed", {}, "cancelled_per_second", "/s", True),
)


def better_than_ours(results: Results) -> str:
    return _lines(results, _is_better)


def worse_than_ours(results: Results) -> str:
    return _lines(results, lambda other, ours, question: _is_better(ours, other, question))


def _lines(results: Results, holds: Callable[[float, float, Question], bool]) -> str:
    lines = []
    for question in QUESTIONS:
        values = _values(results, question)
        ours = values.pop(US, None)
        if ours is None:
            continue
        found = [
            f"{name} {other:,.0f}{question.unit}"
            for name, other in values.items()
            if holds(other, ours, question)
        ]
        if found:
            lines.append(f"- {question.text}: {', '.join(found)}; {US} {ours:,.0f}{question.unit}")
    return "\n".join(lines) or "- nothing"


def _values(results: Results, question: Question) -> dict[str, float]:
    """The first result of each contender; other configurations of Duewheel are left out."""
    values: dict[str, float] = {}
    for record in results.of(question.case, **question.records):
        if record["contender"] == US or not record["contender"].startswith(US):
            values.setdefault(record["contender"], _value(record, question))
    return values


def _value(record: Record, question: Question) -> float:
    return float(record[question.value])


def _is_better(better: float, worse: float, question: Question) -> bool:
    if question.is_more_better:
        return better > worse * CLEARLY
    return better * CLEARLY < worse
