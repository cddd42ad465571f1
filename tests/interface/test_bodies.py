import json
from base64 import b64decode, b64encode

import pytest

from duewheel.interface.bodies import received, sent
from duewheel.rules.refusals import MalformedBody, TooLarge

LAMBDA_ANSWER_BYTES_MAX = 6 * 1024 * 1024


def test_a_body_arrives_as_text_or_as_base64() -> None:
    assert received('{"a":"é"}', False, 100) == '{"a":"é"}'
    assert received(b64encode('{"a":"é"}'.encode()).decode(), True, 100) == '{"a":"é"}'


@pytest.mark.parametrize("body", [None, ""])
def test_a_missing_body_is_malformed(body: str | None) -> None:
    with pytest.raises(MalformedBody):
        received(body, False, 100)


@pytest.mark.parametrize(
    ("body", "is_base64"),
    [("\ud800", False), ("no base64!", True), ("abc", True), ("/w==", True), ("é", True)],
)
def test_what_is_no_utf_8_is_malformed(body: str, is_base64: bool) -> None:
    with pytest.raises(MalformedBody):
        received(body, is_base64, 100)


def test_the_limit_counts_bytes_not_characters() -> None:
    assert received("é" * 5, False, 10)
    with pytest.raises(TooLarge):
        received("é" * 5, False, 9)
    with pytest.raises(TooLarge):
        received(b64encode(b"x" * 10).decode(), True, 9)


@pytest.mark.parametrize("character", ["x", '"', "\x01", "é", "😀"])
def test_the_largest_answer_of_a_batch_fits_into_what_lambda_returns(character: str) -> None:
    text = character * (4_500_000 // len(character.encode()))
    body, is_base64 = sent(text)
    assert len(json.dumps(body)) < LAMBDA_ANSWER_BYTES_MAX
    assert b64decode(body).decode() == text if is_base64 else body == text


def test_a_usual_answer_travels_as_text() -> None:
    assert sent('{"a":1}') == ('{"a":1}', False)
