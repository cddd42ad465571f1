"""docs/reference.md against the template, the Makefile and the local stack."""

import ast
import re
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

from docs.parameters import GROUPS, text
from duewheel.rules.wheel.profile import PRECISE
from local.__main__ import ENDS_WITH_STDIN, PORT_DEFAULT
from local.aws.template import source_of
from tests.support.page_blocks import PAGES, ROOT, text_of

PAGE = text_of("docs/reference.md")
TEMPLATE: Any = source_of(ROOT / "template.yaml")
MAKEFILES = "".join((ROOT / name).read_text() for name in ("Makefile", "infra/build.mk"))
VERBS = set(re.findall(r"^([a-z-]+):.*##", MAKEFILES, re.MULTILINE))


def rows(heading: str) -> list[str]:
    """Of the first table under it."""
    under = PAGE.partition(f" {heading}\n\n")[2].splitlines()
    start = next(number for number, line in enumerate(under) if line.startswith("|"))
    return list(takewhile(lambda line: line.startswith("|"), under[start + 2 :]))


def first_names(heading: str) -> list[str]:
    return [re.findall(r"`([^`]+)`", row)[0] for row in rows(heading)]


def test_the_tables_of_parameters_are_the_templates() -> None:
    """After a change that is meant: `make examples`."""
    assert text() == PAGE
    listed = [name for group in GROUPS for name in group["Parameters"]]
    assert sorted(listed) == sorted(TEMPLATE["Parameters"])


def test_the_table_of_outputs_is_the_templates() -> None:
    assert rows("Outputs") == [
        f"| `{name}` | {output['Description']} |" for name, output in TEMPLATE["Outputs"].items()
    ]


def asked_of_the_environment() -> Iterator[str]:
    """What the local stack reads, by its source."""
    for source in (ROOT / "local").glob("*.py"):
        for node in ast.walk(ast.parse(source.read_text())):
            match node:
                case ast.Call(
                    func=ast.Attribute(ast.Attribute(attr="environ"), "get"),
                    args=[ast.Constant(str(name)), *_],
                ):
                    yield name
                case ast.Call(
                    func=ast.Attribute(ast.Attribute(attr="environ"), "get"),
                    args=[ast.Name("ENDS_WITH_STDIN"), *_],
                ):
                    yield ENDS_WITH_STDIN
                case ast.Call(func=ast.Attribute(ast.Attribute(attr="environ"), "get")):
                    raise AssertionError(f"{source.name} asks for something else")


def test_the_settings_of_the_local_stack_are_those_that_it_reads() -> None:
    assert sorted(first_names("The local stack")) == sorted(set(asked_of_the_environment()))
    defaults = dict(re.findall(r"^\| `([A-Z_]+)` \| `(\S+)` \|", PAGE, re.MULTILINE))
    assert (defaults["PORT"], defaults["PROFILE"]) == (str(PORT_DEFAULT), PRECISE.name)


def test_the_calls_of_the_local_stack_are_those_that_it_takes() -> None:
    source = (ROOT / "local/control/routes.py").read_text()
    taken = re.findall(r'case \["(\w+)"', source)
    assert sorted(set(re.findall(r"/_local/(\w+)[^|]*` \|", PAGE))) == sorted(taken)


def test_every_verb_is_explained_once_to_those_who_run_or_to_those_who_change_it() -> None:
    table = text_of("CONTRIBUTING.md").partition("## Verbs")[2].partition("\n## ")[0]
    both = [*rows("Running a stack"), *table.splitlines()]
    explained = [
        verb for row in both for verb in re.findall(r"`make ([\w-]+)", row.split(" | ")[0])
    ]
    assert sorted(explained) == sorted(VERBS)


def test_no_page_names_a_verb_that_is_none() -> None:
    for page in PAGES:
        named = re.findall(r"`make ([a-z-]+)[ `]", text_of(page))
        assert set(named) <= VERBS, page
