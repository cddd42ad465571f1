"""A run of the whole suite fails when no test uses a right of the template."""

from types import SimpleNamespace
from typing import Any

import pytest

from local.aws.policies import Right
from tests.support import rights_in_use
from tests.support.cases import each_case
from tests.support.rights_in_use import RightsInUse

NEEDLESS = Right("SweeperRole", "dynamodb:Scan", "arn:aws:dynamodb:us-east-1:1:table/t")
USED = Right("ApiRole", "dynamodb:GetItem", "arn:aws:dynamodb:us-east-1:1:table/t")
WHOLE = pytest.Config.ArgsSource.TESTPATHS
NAMED = pytest.Config.ArgsSource.ARGS


class Run:
    """pytest's own process after a run, with the members that the plugin reads."""

    def __init__(
        self, source: Any = WHOLE, kept: dict[str, Any] | None = None, **options: Any
    ) -> None:
        cache = {} if kept is None else kept
        config: Any = SimpleNamespace(
            args_source=source,
            option=SimpleNamespace(**options),
            cache=SimpleNamespace(set=cache.__setitem__, get=cache.get),
        )
        self.plugin = RightsInUse(config)
        self.session: Any = SimpleNamespace(exitstatus=pytest.ExitCode.OK)
        self.lines: list[str] = []

    def ended(self, *workers: Right, status: int = pytest.ExitCode.OK) -> None:
        for right in workers:
            self.plugin.pytest_testnodedown(SimpleNamespace(workeroutput={"rights": [[*right]]}))
        self.session.exitstatus = status
        self.plugin.pytest_sessionfinish(self.session, status)
        self.plugin.pytest_terminal_summary(SimpleNamespace(write_line=self.lines.append))


@pytest.fixture(autouse=True)
def _two_rights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SECOND_OPINION", raising=False)
    monkeypatch.setattr(rights_in_use, "in_use", set())
    monkeypatch.setattr(rights_in_use, "unused", lambda seen: sorted({USED, NEEDLESS} - set(seen)))


def test_a_right_that_no_process_used_fails_the_run_and_is_named() -> None:
    run = Run()
    run.ended(USED)
    assert run.session.exitstatus == pytest.ExitCode.TESTS_FAILED
    assert run.lines == [f"no test uses the right: {' '.join(NEEDLESS)}"]


def test_rights_used_in_any_process_count() -> None:
    run = Run()
    run.ended(USED, NEEDLESS)
    assert run.session.exitstatus == pytest.ExitCode.OK
    assert run.lines == ["rights in use: every right of every role"]


def test_rights_used_in_the_quick_tests_count_after_the_long_tests() -> None:
    kept: dict[str, Any] = {}
    quick = Run(kept=kept, markexpr=rights_in_use.QUICK_PART)
    quick.ended(NEEDLESS)
    assert quick.session.exitstatus == pytest.ExitCode.OK
    assert quick.lines == ["rights in use: judged after the long tests"]
    long = Run(kept=kept, markexpr=rights_in_use.LONG_PART)
    long.ended(USED)
    assert long.session.exitstatus == pytest.ExitCode.OK
    assert long.lines == ["rights in use: every right of every role"]


def test_the_long_tests_alone_are_judged_by_the_rights_that_they_used() -> None:
    run = Run(markexpr=rights_in_use.LONG_PART)
    run.ended(USED)
    assert run.session.exitstatus == pytest.ExitCode.TESTS_FAILED


@each_case(
    ("source", "options"),
    [
        (NAMED, {}),
        (WHOLE, {"keyword": "sweep"}),
        (WHOLE, {"lf": True}),
        (WHOLE, {"maxfail": 1}),
        (WHOLE, {"markexpr": "stack"}),
    ],
)
def test_a_run_of_a_part_is_not_judged_and_reports_that(
    source: Any, options: dict[str, Any]
) -> None:
    run = Run(source, **options)
    run.ended(USED)
    assert run.session.exitstatus == pytest.ExitCode.OK
    assert run.lines == ["rights in use: not judged, since this was a part of the tests"]


def test_a_run_with_failures_is_not_judged_and_reports_that() -> None:
    run = Run()
    run.ended(USED, status=pytest.ExitCode.TESTS_FAILED)
    assert run.lines == ["rights in use: not judged, since tests failed"]


def test_a_worker_passes_on_the_rights_that_it_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rights_in_use, "in_use", {USED})
    worker: Any = SimpleNamespace(workeroutput={})
    RightsInUse(worker).pytest_sessionfinish(SimpleNamespace(), pytest.ExitCode.OK)  # type: ignore[arg-type]
    assert worker.workeroutput["rights"] == [tuple(USED)]
