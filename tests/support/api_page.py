"""The examples of docs/api.md, and of docs/xtimer.md."""

from docs.examples.make import PAGE, XTIMER_PAGE
from docs.examples.page import examples_in

TEXT = PAGE.read_text("utf-8")
EXAMPLES = examples_in(TEXT)
XTIMER_TEXT = XTIMER_PAGE.read_text("utf-8")
XTIMER_EXAMPLES = examples_in(XTIMER_TEXT)
