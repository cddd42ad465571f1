"""docs/api.md has an example of every call of the service, made by the service."""

import re

from functions.api.app import CALLS
from tests.support.api_page import EXAMPLES

REQUEST = re.compile(r"^```http\n([A-Z]+) (/\S+) HTTP/1\.1\n.*?^HTTP/1\.1 (\d+)$", re.M | re.S)
TAKEN = {(method, path) for path, methods in CALLS.by_path.items() for method in methods}


def path_in_calls(path: str) -> str | None:
    """The path with its placeholders, found in the order in which the service matches."""
    for pattern in CALLS.by_path:
        if re.fullmatch(re.sub(r"{\w+}", "[^/]+", pattern), path):
            return pattern
    return None


def test_every_call_has_an_example_that_succeeds() -> None:
    made = set()
    for text in EXAMPLES.values():
        for method, target, status in REQUEST.findall(text):
            if int(status) < 300:
                made.add((method, path_in_calls(target.partition("?")[0])))
    assert TAKEN - made == set()
