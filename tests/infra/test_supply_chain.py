"""The packages of others are pinned to their bytes. `tests/check` looks at what is said of them."""

import re
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.support.cases import each_case
from tests.support.pins import DEPLOYED, ROOT, TOOLS, pinned

RECIPES = ("Makefile", "infra/build.mk", "layers/vendor/Makefile")


@each_case("path", [DEPLOYED, *TOOLS])
def test_every_line_pins_a_package_to_its_hashes(path: Path) -> None:
    assert pinned(path)


@pytest.mark.parametrize("line", ["six==1.17.0", "six", "six>=1 --hash=sha256:" + "0" * 64])
def test_a_line_that_does_not_pin_is_an_error(tmp_path: Path, line: str) -> None:
    (tmp_path / "requirements.txt").write_text(line)
    with pytest.raises(AssertionError, match="six"):
        pinned(tmp_path / "requirements.txt")


def test_every_file_of_requirements_is_chosen_by_make_pins() -> None:
    recipe = (ROOT / "Makefile").read_text("utf-8")
    for path in (DEPLOYED, *TOOLS):
        assert f" -o {path.relative_to(ROOT)}\n" in recipe


def test_nothing_is_installed_without_its_hash() -> None:
    recipes = [(ROOT / name).read_text("utf-8").replace("\\\n", " ") for name in RECIPES]
    commands = [
        line
        for text in recipes
        for line in text.splitlines()
        if " pip install " in line and "#" not in line
    ]
    assert len(commands) == 3, "uv's and pip's, and the one of what is deployed"
    assert all("--require-hashes" in line or "$(PINNED)" in line for line in commands)
    assert re.search(r"^PINNED = .*--require-hashes", recipes[0], re.MULTILINE)


def test_what_is_deployed_is_installed_from_wheels_alone() -> None:
    """A source distribution would run code of its own where the package is built."""
    text = (ROOT / "layers/vendor/Makefile").read_text("utf-8")
    assert "--only-binary=:all:" in text


def test_what_is_tested_is_what_is_deployed() -> None:
    deployed = pinned(DEPLOYED)
    assert deployed.items() <= pinned(ROOT / "requirements/dev.txt").items()
    assert {(name, version(name)) for name, _ in deployed} == set(deployed)
