"""`make bench-cold` starts every function: what it measures is the whole of a start."""

import os
import sys
import sysconfig
from pathlib import Path

import pytest

from bench.cold_starts import BASELINE, GOALS, Start, code_of, show, started
from tests.support.bounds import quick_first

ROOT = Path(__file__).parents[2]
FUNCTIONS = sorted(path.parent.name for path in ROOT.glob("functions/*/app.py"))


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Laid out as `make build` leaves it, of the sources."""
    folder = tmp_path_factory.mktemp("build")
    packages = Path(sysconfig.get_path("purelib"))
    for layer, python in (("CoreLayer", ROOT / "layers/core"), ("VendorLayer", packages)):
        (folder / layer).mkdir()
        os.symlink(python, folder / layer / "python")
    for name in FUNCTIONS:
        os.symlink(ROOT / "functions" / name, folder / f"{name.title().replace('_', '')}Function")
    return folder


def test_every_function_has_a_goal() -> None:
    assert sorted(GOALS) == FUNCTIONS


@pytest.mark.parametrize("name", quick_first(FUNCTIONS, pytest.mark.exhaustive))
def test_a_function_is_started_until_it_could_take_an_event(build: Path, name: str) -> None:
    start = started(sys.executable, build, code_of(build)[name])
    assert start.cpu_ms > 0
    assert start.modules > 100


def test_a_function_is_told_beside_its_goal(capsys: pytest.CaptureFixture[str]) -> None:
    show([{BASELINE: Start(100, 40, 500), "ingest": Start(140, 50, 700)}])
    assert "| ingest | 140 ms | 50 MB | 700 | 1.40 | at most 1.5 |" in capsys.readouterr().out
