"""Rules of the code that no linter checks, read from the syntax trees of the sources."""

import ast
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

from tests.support.cases import each_case

ROOT = Path(__file__).parents[1]
CORE = ROOT / "layers" / "core" / "duewheel"
HANDLERS = sorted((ROOT / "functions").glob("*/app.py"))
DEPLOYED = [*sorted(CORE.rglob("*.py")), *HANDLERS]
SOURCES = [*DEPLOYED, *sorted((ROOT / "local").rglob("*.py"))]

LINES_OF_A_MODULE = 500
LINES_OF_A_FUNCTION = 60
FIELDS_BY_POSITION = 4
OF_MANY_BY_POSITION = 2
LINES_OF_A_HANDLER = 200  # that of the api is a table of calls, a few lines each

Check = Callable[[ast.Module], Iterable[ast.AST]]


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


@cache
def nodes_of(module: ast.Module) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(module))


def offenders(check: Check, paths: Iterable[Path], *, but: Path | None = None) -> list[str]:
    """The lines in which a check finds something; `but` is the file, or the folder, that may do
    it."""
    return [
        f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}: {first_line(node)}"
        for path in paths
        if but is None or not path.is_relative_to(but)
        for node in check(tree(path))
    ]


def first_line(node: ast.AST) -> str:
    return ast.unparse(node).partition("\n")[0]


def test_the_sources_are_found() -> None:
    assert len(HANDLERS) >= 4
    assert CORE / "rules" / "wheel" / "addresses.py" in DEPLOYED
    assert ROOT / "local" / "stack.py" in SOURCES


# Dependencies


def imports_of(*packages: str) -> Check:
    def check(module: ast.Module) -> Iterator[ast.AST]:
        for node in nodes_of(module):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            if any(f"{name}.".startswith(f"{package}.") for name in names for package in packages):
                yield node

    return check


def test_only_stores_and_targets_call_aws() -> None:
    calls = CORE / "targets" / "aws" / "calls.py"
    check = imports_of("boto3", "botocore")
    others = [path for path in DEPLOYED if path != calls]
    assert offenders(check, others, but=CORE / "stores") == []
    sessions = imports_of("boto3", "botocore.session")
    assert offenders(sessions, DEPLOYED, but=CORE / "stores") == []
    assert offenders(sessions, DEPLOYED) != [], "the check finds such code"


def test_running_code_does_not_import_types_of_aws_clients() -> None:
    """`mypy_boto3_*` is not packaged, so it may be imported under TYPE_CHECKING only."""

    def unguarded(module: ast.Module) -> Iterator[ast.AST]:
        guarded = {
            inner
            for node in nodes_of(module)
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            for inner in ast.walk(node)
        }
        for node in imports_of("mypy_boto3_dynamodb", "mypy_boto3_sqs")(module):
            if node not in guarded:
                yield node

    assert offenders(unguarded, SOURCES) == []


CLOCK_READS = ("now", "utcnow", "today")  # of datetime and date, however they were imported


def clock_reads(module: ast.Module) -> Iterator[ast.AST]:
    yield from imports_of("time")(module)
    for node in nodes_of(module):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            of_what = ast.unparse(node.func.value).rpartition(".")[2]
            if node.func.attr in CLOCK_READS and of_what in ("datetime", "date"):
                yield node


def test_the_clock_is_read_in_one_place() -> None:
    assert offenders(clock_reads, DEPLOYED, but=CORE / "clock.py") == []
    assert offenders(clock_reads, DEPLOYED) != [], "the check finds such code"


# Concurrent work: begun only where it is awaited, however the caller ends

BEGINS_WORK = {"map", "submit", "to_thread", "run_in_executor", "gather", "create_task"}
BEGINS_WORK |= {"ensure_future", "Thread", "TaskGroup", "call_soon", "call_later"}


def concurrent_work(module: ast.Module) -> Iterator[ast.AST]:
    """`pool.map(...)`, `asyncio.gather(...)`, `Thread(...)`; a `map(...)` alone begins no work."""
    for node in nodes_of(module):
        match node:
            case ast.Call(func=ast.Attribute(attr=name)) if name in BEGINS_WORK:
                yield node
            case ast.Call(func=ast.Name(id=name)) if name in BEGINS_WORK - {"map"}:
                yield node


def test_concurrent_work_is_begun_only_where_it_is_awaited() -> None:
    """Targets make callbacks and look hosts up; they write no items."""
    fan_out = (CORE / "fan_out.py", CORE / "workflows" / "gather_all.py")
    writers = [path for path in DEPLOYED if path not in fan_out]
    assert offenders(concurrent_work, writers, but=CORE / "targets") == []
    for path in fan_out:
        assert offenders(concurrent_work, [path]) != [], "the check finds such code"


@each_case("line", ["self.writers.map(f, x)", "asyncio.to_thread(f)", "Thread(target=f).start()"])
def test_the_check_finds_concurrent_work(line: str) -> None:
    assert list(concurrent_work(ast.parse(line)))
    assert not list(concurrent_work(ast.parse("list(map(f, x))")))


# Keys are built and parsed in one module

KEYS = {"slot", "place", "task_id"}
TAKING_APART = {"split", "rsplit", "partition", "rpartition", "removeprefix", "removesuffix"}


def keys_built_or_parsed(module: ast.Module) -> Iterator[ast.AST]:
    """`place.split(...)`, `item["slot"]["S"].partition(...)`, `place[:11]`, `f"{second:011d}"`."""
    for node in nodes_of(module):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in TAKING_APART and mentions_a_key(node.func.value):
                yield node
        elif isinstance(node, ast.Subscript):
            if is_by_position(node.slice) and mentions_a_key(node.value):
                yield node
        elif isinstance(node, ast.FormattedValue) and "011d" in ast.unparse(node):
            yield node


def is_by_position(index: ast.expr) -> bool:
    return isinstance(index, ast.Slice) or (
        isinstance(index, ast.Constant) and isinstance(index.value, int)
    )


def mentions_a_key(node: ast.AST) -> bool:
    words: set[object] = set()
    for inner in ast.walk(node):
        match inner:
            case ast.Name(id=word) | ast.Attribute(attr=word) | ast.Constant(value=word):
                words.add(word)
    return bool(KEYS & words)


def test_slots_places_and_task_ids_are_built_and_parsed_in_one_module() -> None:
    addresses = CORE / "rules" / "wheel" / "addresses.py"
    assert offenders(keys_built_or_parsed, SOURCES, but=addresses) == []


@each_case(
    "line",
    [
        "place.split('#')",
        "entry.place[:11]",
        "item['slot']['S'].partition('.')",
        "int(task_id[0])",
        "f'{second:011d}.'",
    ],
)
def test_the_check_finds_a_key_that_is_built_or_parsed(line: str) -> None:
    assert list(keys_built_or_parsed(ast.parse(line)))


# Size and shape


def test_every_module_has_a_docstring() -> None:
    assert [path for path in SOURCES if not ast.get_docstring(tree(path))] == []


def test_every_module_has_a_limited_length() -> None:
    assert [path for path in SOURCES if lines_of(path) > LINES_OF_A_MODULE] == []
    assert [path for path in HANDLERS if lines_of(path) >= LINES_OF_A_HANDLER] == []


def lines_of(path: Path) -> int:
    return len(path.read_text("utf-8").splitlines())


def test_every_function_has_a_limited_length() -> None:
    def too_long(module: ast.Module) -> Iterator[ast.AST]:
        for node in nodes_of(module):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > LINES_OF_A_FUNCTION:
                    yield node

    assert offenders(too_long, SOURCES) == []


def structs_of_many_fields(module: ast.Module) -> Iterator[tuple[ast.ClassDef, int]]:
    """Each with the number of fields without a default."""
    for node in nodes_of(module):
        if isinstance(node, ast.ClassDef) and "Struct" in map(ast.unparse, node.bases):
            fields = [one for one in node.body if isinstance(one, ast.AnnAssign)]
            if len(fields) > FIELDS_BY_POSITION:
                yield node, sum(field.value is None for field in fields)


def is_kw_only(node: ast.ClassDef) -> bool:
    return any(keyword.arg == "kw_only" for keyword in node.keywords)


def test_a_struct_of_many_fields_takes_them_by_name() -> None:
    """If one or two of them have no default, these may be given by position."""

    def unnamed(module: ast.Module) -> Iterator[ast.AST]:
        for node, required in structs_of_many_fields(module):
            if required > OF_MANY_BY_POSITION and not is_kw_only(node):
                yield node

    large = {node.name for path in DEPLOYED for node, _ in structs_of_many_fields(tree(path))}

    def by_position(module: ast.Module) -> Iterator[ast.AST]:
        for node in nodes_of(module):
            match node:
                case ast.Call(func=ast.Name(id=name), args=given) if name in large:
                    if len(given) > OF_MANY_BY_POSITION:
                        yield node

    assert large
    assert offenders(unnamed, DEPLOYED) == []
    assert offenders(by_position, DEPLOYED) == []


@each_case("path", HANDLERS)
def test_a_function_has_one_handler_of_event_and_context(path: Path) -> None:
    functions = [node for node in tree(path).body if isinstance(node, ast.FunctionDef)]
    (handler,) = (node for node in functions if node.name == "handler")
    assert [argument.arg for argument in handler.args.args] == ["event", "context"]


def test_no_object_is_wired_while_a_module_is_imported() -> None:
    """A function pays at its cold start only for the parts that it uses, and a test brings its own
    clock."""

    def wired_at_import(module: ast.Module) -> Iterator[ast.AST]:
        for statement in module.body:
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            for node in ast.walk(statement):
                if isinstance(node, ast.Call):
                    called = ast.unparse(node.func)
                    if called.startswith(("wiring.", "boto3.", "Session", "settings_from", "os.")):
                        yield node

    assert offenders(wired_at_import, DEPLOYED) == []


def test_no_module_has_a_vague_name() -> None:
    vague = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}
    everything = [*SOURCES, *(ROOT / "tests").rglob("*.py"), *(ROOT / "bench").rglob("*.py")]
    names = [path.relative_to(ROOT).with_suffix("") for path in everything]
    assert [str(name) for name in names if vague & set(name.parts)] == []
