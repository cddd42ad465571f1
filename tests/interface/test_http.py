import json
from base64 import b64decode, b64encode

import pytest

from duewheel.interface.http import Answer, Request
from duewheel.rules.access.grants import ANYTHING
from duewheel.rules.refusals import MalformedBody, TooLarge
from tests.support.cases import each_case

LAMBDA_ANSWER_BYTES_MAX = 6 * 1024 * 1024


def text_of(body: str | None, bytes_max: int = 100, *, is_base64: bool = False) -> str:
    request = Request(
        method="POST",
        path="/v1/tasks",
        request_id="request-1",
        body=body,
        is_base64=is_base64,
        permit=ANYTHING,
    )
    return request.text(bytes_max)


def test_a_body_arrives_as_text_or_as_base64() -> None:
    assert text_of('{"a":"é"}') == '{"a":"é"}'
    assert text_of(b64encode('{"a":"é"}'.encode()).decode(), is_base64=True) == '{"a":"é"}'


@each_case("body", [None, ""])
def test_a_missing_body_is_malformed(body: str | None) -> None:
    with pytest.raises(MalformedBody):
        text_of(body)


@each_case(
    ("body", "is_base64"),
    [("\ud800", False), ("no base64!", True), ("abc", True), ("/w==", True), ("é", True)],
)
def test_a_body_that_is_not_utf_8_is_malformed(body: str, is_base64: bool) -> None:
    with pytest.raises(MalformedBody):
        text_of(body, is_base64=is_base64)


def test_the_limit_counts_bytes_not_characters() -> None:
    assert text_of("é" * 5, 10)
    with pytest.raises(TooLarge):
        text_of("é" * 5, 9)
    with pytest.raises(TooLarge):
        text_of(b64encode(b"x" * 10).decode(), 9, is_base64=True)


@each_case("character", ["x", '"', "\x01", "é", "😀"])
def test_the_largest_answer_of_a_batch_fits_the_limit_of_lambda(character: str) -> None:
    text = character * (4_500_000 // len(character.encode()))
    event = Answer(200, text).event()
    assert len(json.dumps(event)) < LAMBDA_ANSWER_BYTES_MAX
    assert event["isBase64Encoded"]
    assert b64decode(event["body"]).decode() == text


def test_a_usual_answer_is_sent_as_text() -> None:
    assert Answer(201, '{"a":1}', headers={"location": "/v1/tasks/x"}).event() == {
        "statusCode": 201,
        "headers": {"content-type": "application/json", "location": "/v1/tasks/x"},
        "body": '{"a":1}',
        "isBase64Encoded": False,
    }
