"""Every call, asked what schemathesis makes of the API document, and held against it.

The first test is the small dose, for every fourth call. The second is the large one, for all:
`make fuzz` sets how large, and from which seed.
"""

import json
import os
from collections.abc import Callable, Iterable

import pytest

from duewheel.interface.routes import FILE
from tests.fuzz.fuzzing import fuzzed
from tests.fuzz.refusals import ROWS, Row
from tests.fuzz.requests import Name, Sent
from tests.fuzz.service import Answered, Service
from tests.support.api_document import OPERATIONS
from tests.support.aws_guard import AwsGuard
from tests.support.clock import ManualClock

Record = Callable[[str, object], None]
Hold = Callable[[Name, int, int], None]

SMALL = 3  # requests of a call that are right, and as many that are wrong
LARGE = int(os.environ.get("FUZZ_EXAMPLES", "25"))
AWS_CALLS = 80  # for an example on average: an audit takes hundreds, and others a few
SEED = int(os.environ.get("FUZZ_SEED", "1"))
CREATE = ("POST", "/v1/tasks")
SOME_CALLS = sorted({CREATE, *list(OPERATIONS)[::4]})


@pytest.fixture
def held(wired: ManualClock, aws_guard: AwsGuard, record_property: Record) -> Hold:
    def hold(name: Name, examples: int, seed: int) -> None:
        most = aws_guard.calls + AWS_CALLS * examples
        tally = fuzzed(name, Service(wired), examples, seed, lambda: aws_guard.calls < most)
        record_property("fuzz", dict(tally.counts))
        found = "\n".join(str(tally.found[what]) for what in sorted(tally.found))
        assert not found, f"seed {seed}:\n{found}"

    return hold


@pytest.mark.parametrize("name", SOME_CALLS, ids=" ".join)
def test_answers_are_as_the_document_says(held: Hold, name: Name) -> None:
    held(name, SMALL, 1)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", OPERATIONS, ids=" ".join)
def test_answers_to_many_requests_are_as_the_document_says(held: Hold, name: Name) -> None:
    held(name, LARGE, SEED)


@pytest.mark.parametrize("row", [row for row in ROWS if row.said], ids=lambda row: row.why)
def test_the_document_says_what_its_schemas_cannot(row: Row) -> None:
    assert row.said in FILE.read_text("utf-8")


class Doctored(Service):
    """Answers all the same, whatever it is asked."""

    def __init__(self, clock: ManualClock, status: int, body: object, problem: bool) -> None:
        super().__init__(clock)
        kind = "application/problem+json" if problem else "application/json"
        self._answer = Answered(status, {"content-type": kind}, json.dumps(body))

    def answer(self, sent: Sent) -> Answered:
        return self._answer


def _problem(kind: str, status: int) -> dict[str, object]:
    said = {"title": "A problem", "detail": "biz_type: is wrong.", "field": "biz_type"}
    return {"type": f"urn:duewheel:problem:{kind}", "status": status, **said}


@pytest.mark.parametrize(
    ("status", "body", "whats"),
    [
        pytest.param(500, _problem("internal", 500), ["answers 500"], id="a failure"),
        pytest.param(418, _problem("teapot", 418), ["418 is no status"], id="a status"),
        pytest.param(201, {"task": 1}, ["answer: ", "takes what is forbidden"], id="all taken"),
        pytest.param(
            422, _problem("invalid-field", 422), ["refuses what is allowed"], id="all refused"
        ),
        pytest.param(422, _problem("unknown-task", 422), ["answer: "], id="a problem"),
    ],
)
def test_a_service_that_answers_otherwise_is_found(
    wired: ManualClock, status: int, body: object, whats: Iterable[str]
) -> None:
    found = fuzzed(CREATE, Doctored(wired, status, body, status >= 400), SMALL, 1).found
    for what in whats:
        assert any(what in one for one in found), list(found)
