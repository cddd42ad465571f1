"""How a story is run, and how its exchanges are laid out."""

import pytest

from docs.examples.exchange import LONG_CHARACTERS, LONG_LINES, Message
from docs.examples.layout import COLUMNS, laid_out
from docs.examples.teller import INBOX, Story, StoryError, Teller, told

NOON = {"biz_type": "orders", "due_at": "2030-01-31T12:00:00Z"}


def test_a_document_that_fits_into_a_line_is_written_in_one() -> None:
    assert laid_out('{"a":[1,{"b":null}],"c":{}}') == '{"a": [1, {"b": null}], "c": {}}'


def test_a_longer_document_has_a_line_for_each_member() -> None:
    long = "x" * (COLUMNS - len('  "a": "",'))
    assert laid_out(f'{{"a":"{long}","b":["{long}",1]}}').splitlines() == [
        "{",
        f'  "a": "{long}",',
        '  "b": [',
        f'    "{long}",',
        "    1",
        "  ]",
        "}",
    ]


def test_numbers_and_escapes_keep_their_spelling() -> None:
    text = '{"a": 1.0, "b": 1e400, "c": "\\u00e9", "d": 12345678901234567890123}'
    assert laid_out(text) == text


def test_a_body_that_is_not_json_is_shown_unchanged() -> None:
    assert Message("POST / HTTP/1.1", [], '{"a":NaN}').block().splitlines()[-2] == '{"a":NaN}'


def test_a_text_that_is_too_long_is_cut_with_a_note() -> None:
    block = Message("POST / HTTP/1.1", [], f'["{"x" * LONG_CHARACTERS}", "{"y" * 70_000}"]').block()
    assert f'"{"x" * LONG_CHARACTERS}"' in block
    assert f'"{"y" * 20}… 70,000 characters"' in block


def test_only_the_beginning_of_a_body_that_is_too_long_is_shown() -> None:
    short, long = ("\n".join(map(str, range(lines))) for lines in (LONG_LINES, LONG_LINES + 1))
    assert Message("POST / HTTP/1.1", [], short).block().endswith(f"\n{LONG_LINES - 1}\n```")
    assert Message("POST / HTTP/1.1", [], long).block().endswith("\n1\n…\n```")


def test_a_story_begins_at_its_instant_and_shows_the_usual_port() -> None:
    def tell(teller: Teller) -> None:
        task = {**NOON, "callback": {"url": f"{INBOX}/box"}}
        teller.example("create", "POST", "/v1/tasks", task, {"x-team": "billing"})

    create = told(Story(tell))["create"]
    assert create.startswith("```http\nPOST /v1/tasks HTTP/1.1\nx-team: billing\n\n{")
    assert '"created_at": "2030-01-31T08:00:00.000Z"' in create
    assert create.count("http://127.0.0.1:8080/_local/inbox/box") == 2


def test_a_story_may_not_call_other_hosts() -> None:
    def tell(teller: Teller) -> None:
        task = {**NOON, "callback": {"url": "https://example.com/hook"}}
        teller.call("POST", "/v1/tasks", task)
        teller.advance(4 * 3_600)

    with pytest.raises(StoryError, match=r"a callback to example\.com came due"):
        told(Story(tell))


def test_a_call_that_a_story_needs_must_succeed() -> None:
    with pytest.raises(StoryError, match="GET /v1/tasks/17 HTTP"):
        told(Story(lambda teller: teller.call("GET", "/v1/tasks/17")))


def test_two_examples_cannot_have_the_same_name() -> None:
    def tell(teller: Teller) -> None:
        for _ in range(2):
            teller.example("health", "GET", "/v1/health")

    with pytest.raises(StoryError, match="two examples with the name health"):
        told(Story(tell))
