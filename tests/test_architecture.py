"""Rules of the house that no linter holds, read off the syntax trees of the sources."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CORE = ROOT / "layers" / "core" / "duewheel"
HANDLERS = sorted((ROOT / "functions").glob("*/app.py"))
LINES_OF_A_MODULE = 300
LINES_OF_A_FUNCTION = 60
LINES_OF_A_HANDLER = 110

DEPLOYED = [*sorted(CORE.rglob("*.py")), *HANDLERS]
SOURCES = [*DEPLOYED, *sorted((ROOT / "local").rglob("*.py"))]


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"), named(path))


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Every module that is imported, or imported from, anywhere in the file."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.lineno, node.module


def calls(path: Path) -> Iterator[tuple[int, str]]:
    """Every call, as it is spelt: `time.time`, `loop.time`, `datetime.now`."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call):
            yield node.lineno, ast.unparse(node.func)


def test_there_is_something_to_look_at() -> None:
    assert len(HANDLERS) >= 4
    assert CORE / "rules" / "addresses.py" in SOURCES
    assert ROOT / "local" / "stack.py" in SOURCES


# Who may do what


@pytest.mark.parametrize("path", DEPLOYED, ids=named)
def test_aws_is_spoken_to_by_the_stores_alone(path: Path) -> None:
    spoken = [hit for hit in imports(path) if hit[1].split(".")[0] in ("boto3", "botocore")]
    assert spoken == [] or path.parent == CORE / "stores"


@pytest.mark.parametrize("path", SOURCES, ids=named)
def test_the_types_of_aws_clients_are_needed_by_no_running_code(path: Path) -> None:
    """`mypy_boto3_*` is not packaged, so it may stand behind TYPE_CHECKING only."""
    guarded = {
        inner
        for node in ast.walk(tree(path))
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    unguarded = [
        ast.unparse(node)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").startswith("mypy_boto3")
        and node not in guarded
    ]
    assert unguarded == []


CLOCK_READS = (
    "datetime.now",
    "datetime.utcnow",
    "datetime.today",
    "datetime.datetime.now",
    "datetime.datetime.utcnow",
    "date.today",
    "datetime.date.today",
)


@pytest.mark.parametrize("path", DEPLOYED, ids=named)
def test_the_clock_is_read_in_one_place(path: Path) -> None:
    if path == CORE / "clock.py":
        return
    assert [hit for hit in imports(path) if hit[1] == "time"] == []
    assert [hit for hit in calls(path) if hit[1] in CLOCK_READS] == []


# Keys are built and parsed in one module

KEYS = {"slot", "place", "task_id"}


def takes_a_key_apart(node: ast.AST) -> bool:
    """`place.split(...)`, `item["slot"]["S"].partition(...)`, `place[:11]`, `place[11]`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        taken = node.func.attr in ("split", "rsplit", "partition", "rpartition", "removeprefix")
        return taken and mentions_a_key(node.func.value)
    if isinstance(node, ast.Subscript):
        by_position = isinstance(node.slice, ast.Slice) or (
            isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int)
        )
        return by_position and mentions_a_key(node.value)
    return False


def mentions_a_key(node: ast.AST) -> bool:
    words = {
        inner.id if isinstance(inner, ast.Name) else getattr(inner, "attr", None)
        for inner in ast.walk(node)
        if isinstance(inner, ast.Name | ast.Attribute)
    } | {inner.value for inner in ast.walk(node) if isinstance(inner, ast.Constant)}
    return bool(KEYS & words)


def builds_a_key(node: ast.AST) -> bool:
    """A second padded to its eleven digits, which is how every place begins."""
    return isinstance(node, ast.FormattedValue) and "011d" in ast.unparse(node)


@pytest.mark.parametrize("path", SOURCES, ids=named)
def test_slots_places_and_task_ids_are_built_and_parsed_in_one_module(path: Path) -> None:
    if path == CORE / "rules" / "addresses.py":
        return
    offenders = [
        f"{named(path)}:{getattr(node, 'lineno', '?')} {ast.unparse(node)}"
        for node in ast.walk(tree(path))
        if takes_a_key_apart(node) or builds_a_key(node)
    ]
    assert offenders == []


@pytest.mark.parametrize(
    "line",
    [
        "place.split('#')",
        "entry.place[:11]",
        "item['slot']['S'].partition('.')",
        "int(task_id[0])",
        "f'{second:011d}.'",
    ],
)
def test_this_check_sees_a_key_that_is_taken_apart(line: str) -> None:
    assert any(takes_a_key_apart(node) or builds_a_key(node) for node in ast.walk(ast.parse(line)))


# Size and shape


@pytest.mark.parametrize("path", SOURCES, ids=named)
def test_every_module_says_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(tree(path))


@pytest.mark.parametrize("path", SOURCES, ids=named)
def test_modules_and_functions_can_be_read_in_one_go(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= LINES_OF_A_MODULE
    too_long = [
        f"{named(path)}:{node.lineno} {node.name}"
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno >= LINES_OF_A_FUNCTION
    ]
    assert too_long == []


@pytest.mark.parametrize("path", HANDLERS, ids=named)
def test_a_handler_is_short_and_offers_one_handler(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) < LINES_OF_A_HANDLER
    handlers = [
        node
        for node in tree(path).body
        if isinstance(node, ast.FunctionDef) and node.name == "handler"
    ]
    (handler,) = handlers
    assert [argument.arg for argument in handler.args.args] == ["event", "context"]


@pytest.mark.parametrize("path", DEPLOYED, ids=named)
def test_nothing_is_wired_while_a_module_is_imported(path: Path) -> None:
    """A function pays at its cold start only for what it uses, and a test can bring its clock."""
    offenders = []
    for statement in tree(path).body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        offenders += [
            f"{named(path)}:{node.lineno} {ast.unparse(node.func)}"
            for node in ast.walk(statement)
            if isinstance(node, ast.Call)
            and ast.unparse(node.func).startswith(("wiring.", "boto3.", "settings_from", "os."))
        ]
    assert offenders == []


def test_no_module_is_named_for_anything_and_everything() -> None:
    vague = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}
    everything = [*SOURCES, *(ROOT / "tests").rglob("*.py"), *(ROOT / "bench").rglob("*.py")]
    names = [path.relative_to(ROOT).with_suffix("") for path in everything]
    assert [str(name) for name in names if vague & set(name.parts)] == []
