"""The examples in docs/api.md are what the service answers."""

import pytest

from docs.examples.make import all_examples
from docs.examples.page import with_examples
from tests.support.api_page import TEXT


@pytest.mark.stack
def test_the_page_shows_what_the_service_answers() -> None:
    """After a change that is meant: `make examples`."""
    assert with_examples(TEXT, all_examples()) == TEXT
