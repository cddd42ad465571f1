"""The blocks of pages are run from top to bottom, each page on a stack of its own, and no block of
any page is left out."""

import sqlite3
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.cases import each_case
from tests.support.likeness import documents, quoted
from tests.support.page_blocks import PAGES, ROOT, Block, fenced, text_of
from tests.support.read_along import RUN, follow, is_output

FOLLOWED = [
    "README.md",
    "client/README.md",
    "docs/delivery.md",
    "docs/ingest.md",
    "docs/quickstart.md",
    *(page for page in PAGES if page.startswith("docs/guides/")),
]
RUN_ELSEWHERE = {
    ("docs/api.md", "http"): "tests/docs/test_api_examples.py",
    ("docs/xtimer.md", "http"): "tests/docs/test_api_examples.py",
    ("docs/cli.md", "sh"): "client/tests/test_cli_page.py",
    ("docs/client.md", "python"): "client/tests/test_page.py",
    ("docs/operations.md", "sh"): "tests/docs/test_operations_page.py",
    ("docs/other-languages.md", "sh"): "tests/typescript/test_page.py",
    ("docs/other-languages.md", "text"): "tests/typescript/test_page.py",
    ("docs/other-languages.md", "typescript"): "tests/typescript/test_page.py",
    ("docs/testing.md", "python"): "client/tests/test_samples.py",
}
NOT_RUN = {
    ("docs/architecture.md", ""): "a list of folders",
    ("docs/delivery.md", "javascript"): "needs a library of npm",
    ("docs/delivery.md", "go"): "needs a Go module",
    ("docs/delivery.md", "java"): "needs a library of Maven",
    ("docs/testing.md", "text"): "is printed by a benchmark",
}
PICTURE = "mermaid"


@pytest.mark.stack
@pytest.mark.parametrize("page", FOLLOWED)
def test_a_page_can_be_run_and_shows_its_real_output(page: str, tmp_path: Path) -> None:
    differing = follow(text_of(page), tmp_path)
    assert not differing, "\n".join(differing)


def others(page: str) -> list[Block]:
    """Blocks that are neither run with their page nor shown as output of it."""
    blocks = fenced(text_of(page))
    if page not in FOLLOWED:
        return blocks
    outputs = {block for before, block in pairwise(blocks) if is_output(before, block)}
    return [block for block in blocks if block.language not in RUN and block not in outputs]


@each_case("page", PAGES)
def test_a_page_has_no_block_that_is_not_run(page: str) -> None:
    known = {language for of, language in (*RUN_ELSEWHERE, *NOT_RUN) if of == page}
    for block in others(page):
        match block.language:
            case "json":
                assert documents(quoted(block.text)), f"line {block.line}"
            case "sql":
                assert_is_done_once(block.text)
            case language:
                assert language == PICTURE or language in known, f"line {block.line}"


def assert_is_done_once(statement: str) -> None:
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE worked_off (webhook_id TEXT PRIMARY KEY)")
    database.execute(statement, ["AQG5"])
    with pytest.raises(sqlite3.IntegrityError):
        database.execute(statement, ["AQG5"])
    database.close()


def test_blocks_that_are_run_elsewhere_are_found_there() -> None:
    there = {(page, block.language) for page in PAGES for block in others(page)}
    assert {*RUN_ELSEWHERE, *NOT_RUN} <= there
    for (page, _), test in RUN_ELSEWHERE.items():
        assert page in (ROOT / test).read_text()


@pytest.mark.stack
def test_a_wrong_page_is_found(tmp_path: Path) -> None:
    page = """
# Wrong

```sh
url=http://127.0.0.1:8080
curl -s $url/v1/health
```

```json
{"status": "ailing", ...}
```

```sh
duewheel task get orders/none
echo "not reached"
```
"""
    failed, differs = follow(page, tmp_path)
    assert failed.startswith("exit 1")
    assert "no task" in failed.lower()
    assert '"status":"ok"' in differs
