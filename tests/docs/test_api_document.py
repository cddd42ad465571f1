"""The API document agrees with the table of calls, the rules and the page."""

import json
from itertools import islice
from pathlib import Path

import pytest
from openapi_spec_validator import validate

from docs.openapi import page
from docs.openapi.document import DocumentError, Interface, document
from docs.openapi.make import DOCUMENTS, text
from docs.tables import ticks
from duewheel.interface.http import Answer, Calls, for_all_callers
from duewheel.interface.problems import PROBLEM_JSON
from duewheel.rules.refusals import MethodNotAllowed, UnknownCall
from functions.api.app import CALLS
from tests.docs.test_api_calls import TAKEN, path_in_calls
from tests.docs.test_api_problems import answered
from tests.support.api_document import (
    DOCUMENT,
    OPERATIONS,
    body_of,
    operations_of,
    resolved,
    wrong_with,
    wrong_with_answer,
)
from tests.support.api_page import EXAMPLES, TEXT
from tests.support.cases import each_case

EXCHANGES = {one.name: one for one in page.exchanges(EXAMPLES)}
CUT = {"api-document"}  # cut, so no longer JSON
MALFORMED = {"problem-malformed-body"}
RECEIVED = {"callback", "long-callback", "on-outcome", "timer-callback"}
WRONG_IN_PART = {"batch": ["$.tasks[1].callback"]}  # where an example shows a refusal
NO_CALLS = {"problem-unknown-call", "problem-method-not-allowed"}


@each_case("file", DOCUMENTS)
def test_the_files_are_up_to_date(file: Path) -> None:
    """After an intended change: `make openapi`."""
    assert file.read_text("utf-8") == text(file)


@pytest.mark.parametrize("paths", [2, pytest.param(None, marks=pytest.mark.exhaustive)])
def test_the_document_is_valid_openapi(paths: int | None) -> None:
    """All schemas, and some of the paths."""
    validate({**DOCUMENT, "paths": dict(islice(DOCUMENT["paths"].items(), paths))})


def test_the_document_has_exactly_the_calls_of_the_table() -> None:
    assert sorted(operations_of(DOCUMENT)) == sorted(TAKEN)


@each_case("method", ["GET", "POST"])
def test_a_call_without_a_description_is_an_error(method: str) -> None:
    def call() -> Answer:
        raise NotImplementedError

    more = Calls({**CALLS.by_path, "/v1/new": {method: for_all_callers(call)}})
    with pytest.raises(DocumentError, match="/v1/new"):
        document(TEXT, Interface(calls=more))


def test_the_calls_name_every_problem_with_its_status() -> None:
    """All but those of paths and methods that are no calls."""
    named = {
        (name, int(status))
        for operation in OPERATIONS.values()
        for status, response in operation["responses"].items()
        for name in ticks(response["description"])
    }
    of_no_call = {one.type for one in (UnknownCall, MethodNotAllowed)}
    assert named == {one for one in answered().items() if one[0] not in of_no_call}


def test_problems_have_one_schema() -> None:
    schemas = {
        json.dumps(content["schema"])
        for operation in OPERATIONS.values()
        for response in operation["responses"].values()
        for kind, content in response["content"].items()
        if kind == PROBLEM_JSON
    }
    assert schemas == {'{"$ref": "#/components/schemas/Problem"}'}


def test_no_member_of_a_body_has_a_default() -> None:
    """Generated programs demand such a member. The description says it."""
    schemas = DOCUMENT["components"]["schemas"].values()
    members = [one for schema in schemas for one in schema.get("properties", {}).values()]
    assert [one for one in members if "default" in one] == []
    timer = DOCUMENT["components"]["schemas"]["NewTimer"]["properties"]
    assert timer["timezone"]["description"].endswith("By default `UTC`.")
    assert timer["enabled"]["description"].endswith("By default `true`.")


def test_the_summary_of_a_call_is_from_the_table_of_calls() -> None:
    other = "| `POST /v1/timers/upcoming` | ignored: it changes nothing |\n\n"
    summary = page.lines(other + TEXT)["POST", "/v1/timers/upcoming"]
    assert summary.startswith("list the next seconds of a schedule")


def test_the_examples_of_the_page_are_found() -> None:
    assert set(EXAMPLES) - set(EXCHANGES) == CUT | MALFORMED | RECEIVED


@each_case("name", sorted(set(EXCHANGES) - NO_CALLS))
def test_an_example_conforms_to_the_document(name: str) -> None:
    """Every member of an answer is documented, and every request that succeeded is valid."""
    shown = EXCHANGES[name]
    path = path_in_calls(shown.path)
    assert path is not None
    call = shown.method, path
    assert wrong_with_answer(shown.answer, call, shown.status) == []
    if shown.status < 300:
        schema = body_of(call)
        assert (shown.body is not None) == (schema is not None)
        wrong = [] if schema is None else wrong_with(shown.body, schema)
        assert [error.partition(":")[0] for error in wrong] == WRONG_IN_PART.get(name, [])


@each_case("call", sorted(TAKEN))
def test_a_call_shows_the_examples_of_the_page(call: tuple[str, str]) -> None:
    found = {
        name
        for response in OPERATIONS[call]["responses"].values()
        for content in response.get("content", {}).values()
        for name in content.get("examples", {})
    }
    made = {
        name
        for name, one in EXCHANGES.items()
        if (one.method, path_in_calls(one.path)) == call and name not in NO_CALLS
    }
    assert found == made


def test_the_document_has_the_limits_of_the_rules() -> None:
    """One limit of each kind; all others are made from the rules in the same way."""
    task = resolved({"$ref": "#/components/schemas/NewTask"})["properties"]
    assert task["delay_seconds"]["maximum"] == 315_619_200
    assert resolved(task["key"])["pattern"] == "^(?:[A-Za-z0-9._:~-]{1,128})$"
    assert (
        resolved({"$ref": "#/components/schemas/NewTasks"})["properties"]["tasks"]["maxItems"]
        == 500
    )
