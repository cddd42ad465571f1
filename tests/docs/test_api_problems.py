"""docs/api.md lists every problem that the service can answer, and shows each."""

import json
from collections.abc import Iterator

from duewheel.interface import problems
from duewheel.rules.refusals import Refusal
from tests.support.api_page import EXAMPLES, first_table, in_ticks

URN = "urn:duewheel:problem:"


def refusals(of: type[Refusal] = Refusal) -> Iterator[type[Refusal]]:
    for refusal in of.__subclasses__():
        yield refusal
        yield from refusals(refusal)


def answered() -> dict[str, int]:
    """By type: the refusals, and what is no refusal but a failure of the service."""
    known = {refusal.type: refusal.status for refusal in refusals()}
    for answer in (problems.internal("an id"), problems.misconfigured("a reason")):
        known[json.loads(answer.text)["type"].removeprefix(URN)] = answer.status
    return known


def test_the_page_lists_the_problems_that_the_service_answers() -> None:
    rows = first_table("Problems")
    listed = {in_ticks(name): int(status) for name, status, _ in rows}
    assert listed == answered()
    assert len(rows) == len(listed), "each of them once"


def test_no_two_refusals_say_that_they_are_of_the_same_type() -> None:
    """One that says none is a case of the one above it."""
    types = [refusal.type for refusal in refusals() if "type" in vars(refusal)]
    assert len({*types, Refusal.type}) == len(types) + 1


def test_every_problem_has_an_example_in_the_order_of_the_table() -> None:
    shown = {}
    for name, text in EXAMPLES.items():
        if name.startswith("problem-"):
            head, _, problem = text.rpartition("```http\n")[2].partition("\n\n")
            members = json.loads(problem.removesuffix("```\n"))
            assert head.splitlines()[0] == f"HTTP/1.1 {members['status']}"
            assert "content-type: application/problem+json" in head
            shown[members["type"].removeprefix(URN)] = members["status"]
    assert shown == answered()
    assert list(shown) == [in_ticks(name) for name, *_ in first_table("Problems")]
