"""Packages of others are pinned by their hashes. `tests/check` checks the information about
them."""

import re
import tomllib
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
def test_a_line_without_a_pinned_version_and_hash_is_an_error(tmp_path: Path, line: str) -> None:
    (tmp_path / "requirements.txt").write_text(line)
    with pytest.raises(AssertionError, match="six"):
        pinned(tmp_path / "requirements.txt")


def test_make_pins_writes_every_file_of_requirements() -> None:
    recipe = (ROOT / "Makefile").read_text("utf-8")
    for path in (DEPLOYED, *TOOLS):
        assert f" -o {path.relative_to(ROOT)}\n" in recipe


def test_every_package_is_installed_with_its_hash() -> None:
    recipes = [(ROOT / name).read_text("utf-8").replace("\\\n", " ") for name in RECIPES]
    commands = [
        line
        for text in recipes
        for line in text.splitlines()
        if " pip install " in line and "#" not in line
    ]
    assert len(commands) == 3, "those of uv and pip, and the one for deployed packages"
    assert all("--require-hashes" in line or "$(PINNED)" in line for line in commands)
    assert re.search(r"^PINNED = .*--require-hashes", recipes[0], re.MULTILINE)


def test_deployed_packages_are_installed_from_wheels_only() -> None:
    """A source distribution would run its own code where the package is built."""
    text = (ROOT / "layers/vendor/Makefile").read_text("utf-8")
    assert "--only-binary=:all:" in text


@each_case("name", ["dev", "sam"])
def test_tools_of_operators_and_the_client_take_credentials_of_aws_login(name: str) -> None:
    """The SDK signs for them by the CRT, which it does not need for others."""
    packages = {of for of, _ in pinned(ROOT / f"requirements/{name}.txt")}
    assert {"botocore", "awscrt"} <= packages
    client = tomllib.loads((ROOT / "client/pyproject.toml").read_text("utf-8"))
    assert client["project"]["optional-dependencies"]["aws"] == ["botocore[crt]"]


def test_the_tests_use_the_deployed_versions() -> None:
    deployed = pinned(DEPLOYED)
    assert deployed.items() <= pinned(ROOT / "requirements/dev.txt").items()
    assert {(name, version(name)) for name, _ in deployed} == set(deployed)
