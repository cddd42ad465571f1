"""The examples of docs/api.md."""

from docs.examples.make import PAGE
from docs.examples.page import examples_in

TEXT = PAGE.read_text("utf-8")
EXAMPLES = examples_in(TEXT)
