"""The files that the recipes of CONTRIBUTING.md and a table of docs/architecture.md name exist."""

import re
from pathlib import Path

from tests.support.cases import each_case

ROOT = Path(__file__).parents[2]
RECIPES = (
    (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("## Recipes\n")[2].partition("\n## ")[0]
)
CORE = ROOT / "layers/core/duewheel"
FOLDERS = (ROOT, CORE, CORE / "rules/callbacks/aws", CORE / "rules/tasks", CORE / "console")
FOLDERS = (*FOLDERS, CORE / "console/pages/business")
NAMED = sorted(set(re.findall(r"`([\w/.-]+(?:\.\w+|/\w+))`", RECIPES)))


@each_case("name", NAMED)
def test_a_file_that_a_recipe_names_exists(name: str) -> None:
    assert "NAME" in name or any((room / name).exists() for room in FOLDERS)


def test_recipes_are_found() -> None:
    assert len(re.findall(r"^\*\*", RECIPES, re.M)) == 5
    assert len(NAMED) > 25


def test_the_files_that_the_architecture_lists_by_layer_exist() -> None:
    page = (ROOT / "docs/architecture.md").read_text("utf-8")
    table = page.partition("### Where is what\n")[2].partition("\n### ")[0]
    rows = [row.split("|")[2:5] for row in table.splitlines() if row.startswith("|")][2:]
    layers = ("rules", "workflows", "stores")
    for cells in rows:
        for layer, cell in zip(layers, cells, strict=True):
            for name in re.findall(r"`([^`]+)`", cell):
                assert (CORE / layer / name).exists() or (CORE / name).exists(), name
    assert len(rows) > 12
