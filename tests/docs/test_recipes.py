"""The recipes of CONTRIBUTING.md name files that there are."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECIPES = (
    (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("## Recipes\n")[2].partition("\n## ")[0]
)
CORE = ROOT / "layers/core/duewheel"
ROOMS = (ROOT, CORE, CORE / "rules/callbacks/aws", CORE / "rules/tasks", CORE / "console")
ROOMS = (*ROOMS, CORE / "console/pages/business")
NAMED = sorted(set(re.findall(r"`([\w/.-]+(?:\.\w+|/\w+))`", RECIPES)))


@pytest.mark.parametrize("name", NAMED)
def test_a_file_that_a_recipe_names_is_there(name: str) -> None:
    assert "NAME" in name or any((room / name).exists() for room in ROOMS)


def test_there_are_recipes() -> None:
    assert len(re.findall(r"^\*\*", RECIPES, re.M)) == 5
    assert len(NAMED) > 25
