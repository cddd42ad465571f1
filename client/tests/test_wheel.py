"""The installed wheel: the client, and the stack that the wheel contains."""

import os
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

CLIENT = Path(__file__).parents[1]
ROOT = CLIENT.parent
TESTS = """
import pytest
from duewheel.local_stack import stack_root

@pytest.mark.parametrize("order", range(2))
def test_it(duewheel, order):
    assert str(stack_root()) == {carried!r}
    url = duewheel.inbox_url("shop")
    duewheel.client.tasks.create("orders", key="close", delay=60, payload=order, callback=url)
    assert duewheel.advance("1m") == 1
    assert [call.json for call in duewheel.inbox("shop")] == [order]
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("made")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(made)]
    subprocess.run(build, cwd=CLIENT, check=True, capture_output=True)
    (found,) = made.glob("duewheel-*.whl")
    return found


def test_the_wheel_contains_the_stack_of_the_repository(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    carried = {name.removeprefix("duewheel/_stack/") for name in names if "/_stack/" in name}
    there = {ROOT / "template.yaml"}
    for folder in ("functions", "layers/core", "local"):
        there |= {path for path in (ROOT / folder).rglob("*") if path.is_file()}
    kept = {str(path.relative_to(ROOT)) for path in there if path.suffix != ".pyc"}
    assert carried == kept


def test_the_wheel_contains_types_and_no_tests(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "duewheel/py.typed" in names
    assert not [name for name in names if "tests/" in name or "__pycache__" in name]


def test_the_wheel_requires_httpx_alone(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (metadata,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
    lines = archive.read(metadata).decode().splitlines()
    needed = [line for line in lines if line.startswith("Requires-Dist") and "extra ==" not in line]
    assert needed == ["Requires-Dist: httpx>=0.27"]


def test_the_wheel_installs_the_command(wheel: Path) -> None:
    """Without the extra, the command names the missing packages."""
    archive = zipfile.ZipFile(wheel)
    (points,) = (name for name in archive.namelist() if name.endswith("/entry_points.txt"))
    assert "duewheel = duewheel.cli.__main__:main" in archive.read(points).decode()
    bare = "import sys; sys.modules['click'] = None; import duewheel.cli.__main__ as m; m.main()"
    environment = {**os.environ, "PYTHONPATH": str(CLIENT / "src")}
    ran = subprocess.run(
        [sys.executable, "-c", bare], env=environment, capture_output=True, text=True
    )
    assert (ran.returncode, "pip install 'duewheel[cli]'" in ran.stderr) == (1, True)


def test_the_extra_installs_the_requirements_of_the_functions(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (metadata,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
    text = archive.read(metadata).decode()
    service = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for name in service["dependencies"]:
        assert f"Requires-Dist: {name}; extra == 'local'" in text


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel. Its requirements come from this environment, so that no
    package is downloaded."""
    there = tmp_path_factory.mktemp("installed")
    venv.create(there, with_pip=False)
    python = str(there / "bin/python")
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps"]
    subprocess.run([*pip, "--no-index", str(wheel)], check=True, capture_output=True)
    (packages,) = (there / "lib").glob("python3*/site-packages")
    (packages / "requirements.pth").write_text(sysconfig.get_path("purelib"))
    return there


def run_in(environment: Path, cwd: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    bare = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    python = str(environment / "bin/python")
    return subprocess.run(
        [python, *arguments], cwd=cwd, env=bare, capture_output=True, text=True, timeout=300
    )


@pytest.mark.stack
def test_the_installed_plugin_runs_its_stack_and_isolates_parallel_tests(
    installed: Path, tmp_path: Path
) -> None:
    (packages,) = (installed / "lib").glob("python3*/site-packages")
    (tmp_path / "test_apart.py").write_text(TESTS.format(carried=str(packages / "duewheel/_stack")))
    ran = run_in(installed, tmp_path, "-m", "pytest", "-q", "-n", "2", "-W", "error")
    assert "2 passed" in ran.stdout, ran.stdout + ran.stderr
