"""Every call is sent requests that schemathesis makes from the API document, and the answers are
compared with it.

The first test sends few requests, to every fourth call, and the one to the largest call has no
mark. The second test sends many, to all calls: `make fuzz` sets the number and the seed. The import
of schemathesis takes three seconds, so only a test that runs imports it.
"""

import json
import os
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from tests.support.api_document import BOTH, OPERATIONS
from tests.support.aws_guard import AwsGuard
from tests.support.bounds import quick_first
from tests.support.clock import ManualClock

Record = Callable[[str, object], None]
Name = tuple[str, str]
Hold = Callable[[Name, int, int], None]

SMALL = 3  # valid requests of a call, and as many invalid ones
LARGE = int(os.environ.get("FUZZ_EXAMPLES", "25"))
AWS_CALLS = 80  # for an example on average: an audit makes hundreds, other calls a few
SEED = int(os.environ.get("FUZZ_SEED", "1"))
CREATE = ("POST", "/v1/tasks")
SOME_CALLS = [CREATE, *sorted({*list(OPERATIONS)[::4]} - {CREATE})]


@pytest.fixture
def held(wired: ManualClock, aws_guard: AwsGuard, record_property: Record) -> Hold:
    from tests.fuzz.fuzzing import fuzzed
    from tests.fuzz.service import Service

    def hold(name: Name, examples: int, seed: int) -> None:
        most = aws_guard.calls + AWS_CALLS * examples
        tally = fuzzed(name, Service(wired), examples, seed, lambda: aws_guard.calls < most)
        record_property("fuzz", dict(tally.counts))
        found = "\n".join(str(tally.found[what]) for what in sorted(tally.found))
        assert not found, f"seed {seed}:\n{found}"

    return hold


@pytest.mark.parametrize(
    "name", quick_first([(name,) for name in SOME_CALLS], pytest.mark.exhaustive)
)
def test_answers_conform_to_the_document(held: Hold, name: Name) -> None:
    held(name, SMALL, 1)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", OPERATIONS, ids=" ".join)
def test_answers_to_many_requests_conform_to_the_document(held: Hold, name: Name) -> None:
    held(name, LARGE, SEED)


def test_the_document_describes_the_rules_that_its_schemas_cannot_express() -> None:
    from tests.fuzz.refusals import ROWS

    document = json.dumps(BOTH, ensure_ascii=False)
    assert [row.why for row in ROWS if row.documented not in document] == []


def service_with_answer(clock: ManualClock, status: int, body: object) -> Any:
    """Returns the same answer to every request."""
    from tests.fuzz.service import Answered, Service

    kind = "application/problem+json" if status >= 400 else "application/json"
    service = Service(clock)
    service.answer = lambda sent: Answered(  # type: ignore[method-assign]
        status, {"content-type": kind}, json.dumps(body)
    )
    return service


def _problem(kind: str, status: int) -> dict[str, object]:
    members = {"title": "A problem", "detail": "biz_type: is wrong.", "field": "biz_type"}
    return {"type": f"urn:duewheel:problem:{kind}", "status": status, **members}


@pytest.mark.parametrize(
    ("status", "body", "whats"),
    quick_first(
        [
            (201, {"task": 1}, ["answer: ", "takes what is forbidden"]),
            (422, _problem("invalid-field", 422), ["refuses what is allowed"]),
            (500, _problem("internal", 500), ["answers 500"]),
            (418, _problem("teapot", 418), ["418 is no status"]),
            (422, _problem("unknown-task", 422), ["answer: "]),
        ],
        pytest.mark.exhaustive,
        2,
    ),
)
def test_answers_that_do_not_conform_are_found(
    wired: ManualClock, status: int, body: object, whats: Iterable[str]
) -> None:
    from tests.fuzz.fuzzing import fuzzed

    found = fuzzed(CREATE, service_with_answer(wired, status, body), SMALL, 1).found
    for what in whats:
        assert any(what in one for one in found), list(found)
