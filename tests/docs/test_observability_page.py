"""docs/observability.md against the code: metrics, actions of the log, prices."""

import re
from pathlib import Path

import pytest

from duewheel.metrics import METRICS
from local.aws.metrics import filters_of
from local.aws.resources import Resources

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "observability.md").read_text(encoding="utf-8")
CORE = [*(ROOT / "layers" / "core").rglob("*.py"), *(ROOT / "functions").rglob("*.py")]
# As they stand in calls of the logger, in what is handed to it, and in what becomes of a task.
ACTION = re.compile(r'action="([a-z-]+)"|"action": "([a-z-]+)"|"(breaker-[a-z]+)"')
ENDS = {"dead", "expired"}
FUNCTIONS = {"api", "authorizer", "ingest", "scheduler", "notifier", "sweeper", "all"}
LEVELS = {"INFO", "WARN", "ERROR"}


def section(title: str) -> str:
    found: str = PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    assert found, title
    return found


def rows(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if re.match(r"\| (?!---)", line)]
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines]


def test_the_tables_of_metrics_list_those_of_the_functions_and_of_the_filters(
    resources: Resources,
) -> None:
    told = {name: unit for name, unit, *_ in rows(section("Metrics")) if name != "metric"}
    counted = {metric.name: metric.unit for metric in METRICS}
    filtered = {each.metric: each.unit for each in filters_of(resources)}
    assert told == counted | filtered


@pytest.mark.parametrize(("title", "column"), [("Metrics", 2), ("The log", 2)])
def test_the_tables_name_functions_that_there_are(title: str, column: int) -> None:
    for row in rows(section(title)):
        if row[0] not in ("metric", "action"):
            assert set(row[column].split(", ")) <= FUNCTIONS, row


def test_the_table_of_the_log_lists_every_action_and_no_other() -> None:
    found = (ACTION.finditer(path.read_text(encoding="utf-8")) for path in CORE)
    in_code = {next(filter(None, one.groups())) for each in found for one in each} | ENDS
    told = {
        action
        for actions, levels, *_ in rows(section("The log"))
        if actions != "action"
        for action in re.findall(r"`([a-z-]+)`", actions)
    }
    assert told == in_code


def test_the_table_of_the_log_knows_the_levels() -> None:
    told = {row[1] for row in rows(section("The log"))} - {"level", "as logged from"}
    assert {level for levels in told for level in levels.split(", ")} == LEVELS


def test_the_prices_are_those_of_so_many_metrics(resources: Resources) -> None:
    """What comes while idle and at work is counted by `make cost`, whose tests hold it."""
    most = 0.30 * (len(METRICS) + len({each.metric for each in filters_of(resources)}))
    for text in ("four come: 1.20 dollars", "nine: 2.70", f"{most:.2f}, which is the most"):
        assert text in PAGE
    template = (ROOT / "template.yaml").read_text(encoding="utf-8")
    assert f"at most {most:.2f} dollars a month" in " ".join(template.split())
