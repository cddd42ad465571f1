"""docs/api.md has an example of every problem of the service."""

import json

from docs.tables import PLACE, problems, refusals, ticks
from duewheel.rules.refusals import Refusal
from tests.support.api_page import EXAMPLES, TEXT

URN = "urn:duewheel:problem:"


def answered() -> dict[str, int]:
    return {name: int(status) for name, (status,) in problems().items()}


def test_no_two_refusals_have_the_same_type() -> None:
    """A refusal without a type of its own is a case of its base class."""
    types = [refusal.type for refusal in refusals(Refusal) if "type" in vars(refusal)]
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
    (table,) = (text for _, name, text, _ in PLACE.findall(TEXT) if name == "problems")
    assert list(shown) == [ticks(row)[0] for row in table.splitlines()[2:]]
