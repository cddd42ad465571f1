"""The examples in docs/api.md and docs/xtimer.md are answers of the service."""

from pathlib import Path

import pytest

from docs.examples.make import STORIES, all_examples
from docs.examples.page import with_examples


@pytest.mark.stack
@pytest.mark.parametrize("page", STORIES, ids=lambda page: page.name)
def test_the_examples_on_a_page_are_up_to_date(page: Path) -> None:
    """After an intended change: `make examples`."""
    text = page.read_text("utf-8")
    assert with_examples(text, all_examples(STORIES[page])) == text
