"""docs/testing.md and docs/samples, run as their readers run them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
BLOCKS = BLOCK.findall((ROOT / "docs/testing.md").read_text())
pytestmark = pytest.mark.stack
SAMPLES = sorted(path for path in (ROOT / "docs/samples").iterdir() if path.is_dir())


def outcome(project: Path) -> str:
    """The output of pytest for the tests of a project that has the client and the plugin."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "client/src"), "NO_COLOR": "1"}
    plugins = ["-p", "duewheel.testing.plugin", "-p", "no:cacheprovider"]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, "-q", "-W", "error"],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    return ran.stdout + ran.stderr


def test_the_blocks_of_the_page_pass(tmp_path: Path) -> None:
    assert {language for language, _ in BLOCKS} == {"python", "text"}  # text: what a command prints
    text = "\n\n".join(code for language, code in BLOCKS if language == "python")
    (tmp_path / "test_page.py").write_text(text)
    output = outcome(tmp_path)
    assert f"{text.count('def test_')} passed" in output, output


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name)
def test_a_sample_passes_its_own_tests(sample: Path) -> None:
    output = outcome(sample)
    written = sum(path.read_text().count("def test_") for path in sample.rglob("test_*.py"))
    assert f"{written} passed" in output, output
