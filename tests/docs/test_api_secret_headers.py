"""docs/api.md names the headers that carry secrets as the rule has them."""

import re
from pathlib import Path

from duewheel.rules.callbacks import secret_headers

PAGE = (Path(__file__).parents[2] / "docs" / "api.md").read_text("utf-8")
SECTION = PAGE.partition("### Headers with secrets\n")[2].partition("\n### ")[0]


def test_the_page_names_the_words_and_schemes_of_the_rule() -> None:
    names, values = SECTION.split("; or when its value", 1)
    words = re.findall(r"`([a-z-]+)`", names)
    assert words == [*secret_headers.SECRET_WORDS, *secret_headers.NOT_SECRET]
    assert re.findall(r"`([A-Za-z]+)`", values)[:8] == list(secret_headers.SCHEMES)


def test_the_page_shows_the_form_that_answers_have() -> None:
    shown, reference = re.findall(r'"authorization": "([^"]+)"', SECTION)
    assert secret_headers.is_shown_form(shown)
    assert secret_headers.is_reference(reference)
