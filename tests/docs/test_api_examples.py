"""The examples in docs/api.md are answers of the service."""

import pytest

from docs.examples.make import all_examples
from docs.examples.page import with_examples
from tests.support.api_page import TEXT


@pytest.mark.stack
def test_the_examples_on_the_page_are_up_to_date() -> None:
    """After an intended change: `make examples`."""
    assert with_examples(TEXT, all_examples()) == TEXT
