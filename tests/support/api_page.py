"""docs/api.md as the tests read it: its examples."""

from docs.examples.make import PAGE
from docs.examples.page import examples_in

TEXT = PAGE.read_text("utf-8")
EXAMPLES = examples_in(TEXT)
