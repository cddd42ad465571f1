"""Compares the answers to generated requests with the API document, call by call."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from msgspec import Struct, field
from msgspec.structs import replace
from schemathesis import Case, GenerationMode
from schemathesis.core.failures import FailureGroup
from schemathesis.core.transport import Response
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.fuzz.document import Judged, judged, wrong_with_answer
from tests.fuzz.refusals import row_of
from tests.fuzz.requests import Name, Sent, cases, prepared_request, sent
from tests.fuzz.service import Answered, Service, problem_of
from tests.support.api_document import OPERATIONS

_CHECKS = [
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
_INDEX = re.compile(r"\[\d+\]")


class Found(Struct, frozen=True):
    """A request whose answer does not conform to the document."""

    what: str
    request: str
    answer: str

    def __str__(self) -> str:
        return f"{self.what}\n    {self.request[:600]}\n    -> {self.answer[:400]}"


class Tally(Struct):
    """The results of one call. `found` has the shortest request of each kind."""

    counts: Counter[str] = field(default_factory=Counter)
    found: dict[str, Found] = field(default_factory=dict)

    def add(self, one: Found) -> None:
        before = self.found.get(one.what)
        if before is None or len(one.request) < len(before.request):
            self.found[one.what] = one


def fuzzed(
    name: Name,
    service: Service,
    examples: int,
    seed: int,
    has_room: Callable[[], bool] = lambda: True,
) -> Tally:
    """Sends so many requests that the document allows, and so many that are changed until it does
    not; fewer if there are not so many."""
    tally = Tally()
    if _takes_cursor(name):
        service.fill()

    def exchange(case: Case) -> None:
        request: Sent | None = sent(case, name, service.made)
        made_of: Case | None = case
        while request is not None and has_room():
            answer = service.answer(request)
            for found in _held(made_of, request, answer, tally.counts):
                tally.add(found)
            following = None if made_of is None else _next_page(request, answer)
            request, made_of = following, None

    _for_each(cases(name, GenerationMode.POSITIVE), exchange, examples, seed)
    if _can_be_wrong(name):
        _for_each(cases(name, GenerationMode.NEGATIVE), exchange, examples, seed)
    return tally


def _for_each(
    strategy: st.SearchStrategy[Case], exchange: Callable[[Case], None], examples: int, seed: int
) -> None:
    seeded(seed)(
        settings(
            max_examples=examples,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],
        )(given(strategy)(exchange))
    )()


def _takes_cursor(name: Name) -> bool:
    return any(one["name"] == "cursor" for one in OPERATIONS[name].get("parameters", ()))


def _next_page(request: Sent, answer: Answered) -> Sent | None:
    """The only valid cursor is one from an answer."""
    if not _takes_cursor(request.name) or answer.problem is not None:
        return None
    cursor = answer.body.get("cursor")
    if cursor is None:
        return None
    others = tuple(pair for pair in request.query if pair[0] != "cursor")
    return replace(request, query=(*others, ("cursor", cursor)))


def _can_be_wrong(name: Name) -> bool:
    """A request with neither a body nor a parameter with constraints cannot be invalid."""
    operation = OPERATIONS[name]
    parameters = operation.get("parameters", ())
    return "requestBody" in operation or any(
        one["in"] != "path" or set(one["schema"]) - {"type", "description"} for one in parameters
    )


def _held(
    case: Case | None, request: Sent, answer: Answered, counts: Counter[str]
) -> Iterator[Found]:
    """`case`: the case of schemathesis from which the request was made."""
    call, answered = " ".join(request.name), f"{answer.status} {answer.text}"

    def found(what: str) -> Found:
        return Found(f"{call}: {what}", str(request), answered)

    counts["requests"] += 1
    if answer.status >= 500:
        yield found(f"answers {answer.status}")
        return
    if case is not None:
        yield from map(found, _not_conforming(case, answer))
    if wrong := wrong_with_answer(answer.body, request.name, answer.status, answer.content_type):
        yield found(f"answer: {_INDEX.sub('[]', wrong)}")
    yield from map(found, _misjudged(request, answer, counts))


def _misjudged(request: Sent, answer: Answered, counts: Counter[str]) -> Iterator[str]:
    """Accepted although it is forbidden, or refused although it is allowed."""
    verdict, problem = judged(request), answer.problem
    counts["forbidden" if verdict.forbidden else "allowed"] += 1
    if verdict.forbidden:
        if problem is None:
            yield f"takes what is forbidden: {_shortened(verdict.forbidden)}"
    elif problem is not None:
        row = row_of(request.name, answer.body)
        if row is not None:
            counts[f"{row.problem}: {row.why}"] += 1
        else:
            yield f"refuses what is allowed: {problem} {_field(answer.body)}"
    elif verdict.tasks is not None:
        yield from _of_batch(request.name, verdict, answer, counts)


def _of_batch(name: Name, verdict: Judged, answer: Answered, counts: Counter[str]) -> Iterator[str]:
    results = answer.body["results"]
    if len(results) != len(verdict.tasks or ()):
        yield f"{len(results)} results of {len(verdict.tasks or ())} tasks"
        return
    for forbidden, result in zip(verdict.tasks or (), results, strict=True):
        counts["tasks of batches"] += 1
        if "problem" not in result:
            if forbidden:
                yield f"takes what is forbidden: {_shortened(forbidden)}"
        elif not forbidden and not row_of(name, result["problem"]):
            problem = problem_of(result["problem"])
            yield f"refuses what is allowed: {problem} {_field(result['problem'])}"


def _not_conforming(case: Case, answer: Answered) -> Iterator[str]:
    """According to the checks of schemathesis."""
    response = Response(
        status_code=answer.status,
        headers={name: [value] for name, value in answer.headers.items()},
        content=answer.text.encode(),
        request=prepared_request(case),
        elapsed=0.0,
        verify=False,
    )
    try:
        case.validate_response(response, checks=_CHECKS)
    except FailureGroup as group:
        for failure in group.exceptions:
            yield f"{failure.title}: {' '.join(str(failure.message).split())[:200]}"


def _field(problem: Any) -> str:
    """The field and the problem, without parts that differ from request to request."""
    detail = problem.get("detail", problem.get("msg", ""))
    return f"{_INDEX.sub('[]', problem.get('field', ''))} ({_shortened(detail)})"


def _shortened(text: str) -> str:
    return re.sub(r"\d+(\.\d+)?", "N", re.sub(r'"[^"]*"|\'[^\']*\'', "…", text))[:160]
