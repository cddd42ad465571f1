"""The document and the page of the xTimer interface agree with its calls."""

import pytest
from openapi_spec_validator import validate

from docs.openapi import page
from duewheel.xtimer.calls import CALLS
from tests.support.api_document import (
    DOCUMENT,
    XTIMER_DOCUMENT,
    body_of,
    operations_of,
    wrong_with,
    wrong_with_answer,
)
from tests.support.api_page import TEXT, XTIMER_EXAMPLES
from tests.support.cases import each_case

CUT, RECEIVED = "xtimer-document", "xtimer-callback"
EXCHANGES = {one.name: one for one in page.exchanges(XTIMER_EXAMPLES) if one.name != CUT}
OPERATIONS = operations_of(XTIMER_DOCUMENT)


@pytest.mark.exhaustive
def test_the_document_is_valid_openapi() -> None:
    validate(XTIMER_DOCUMENT)


def test_the_document_has_exactly_the_calls_of_the_table() -> None:
    table = {(method, path) for path, taken in CALLS.by_path.items() for method in taken}
    assert set(OPERATIONS) == table


def test_every_call_has_an_example_that_succeeds() -> None:
    made = {(one.method, one.path) for one in EXCHANGES.values() if one.answer["code"] == 0}
    assert set(OPERATIONS) - made == {("GET", "/api/openapi.json")}, "whose example is cut"
    assert set(XTIMER_EXAMPLES) - set(EXCHANGES) == {CUT, RECEIVED}


@each_case("name", sorted(EXCHANGES))
def test_an_example_conforms_to_the_document(name: str) -> None:
    shown = EXCHANGES[name]
    call = shown.method, shown.path
    assert wrong_with_answer(shown.answer, call, shown.status) == []
    schema = body_of(call)
    if shown.answer["code"] == 0:
        assert (shown.body is not None) == (schema is not None)
        assert schema is None or wrong_with(shown.body, schema) == []


def test_the_main_document_and_its_page_have_nothing_of_it() -> None:
    assert not any(path.startswith("/api/") for path in DOCUMENT["paths"])
    assert "xtimer" not in str(DOCUMENT).lower()
    assert "/api/" not in TEXT
