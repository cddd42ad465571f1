"""The alarms of docs/operations.md against those of both templates, their prices, and the log."""

import re
from pathlib import Path

import pytest

from bench.cost.bill import price
from duewheel.interface.wheel.wheel_view import OPEN_PLACES_SHOWN
from duewheel.rules.wheel.open_places import OPEN_PLACES_MAX, Why
from duewheel.rules.wheel.profile import PRECISE
from local.aws.emulator import Emulator
from tests.docs.test_observability_page import PAGE as OBSERVABILITY
from tests.docs.test_observability_page import rows
from tests.support.alarms import Alarm, alarms_of, observability, with_observability

ROOT = Path(__file__).parents[2]
WHOLE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
PAGE = WHOLE[WHOLE.index("\n## Who is told\n") : WHOLE.index("\n## Pausing everything\n")]
PARTS = ["For users", "Look", "Do", "Over"]
RUNBOOK = re.compile(r"Runbook: docs/operations\.md#([a-z-]+)$")


@pytest.fixture
def alarms(emulator: Emulator) -> list[Alarm]:
    """Those that there always are, and those that parameters bring."""
    parent = with_observability(Profile=PRECISE.name)
    usual = alarms_of(parent, observability(parent))
    whole = alarms_of(with_observability(IngestQueue="on", TasksPerDayAlarm="1000"))
    names = {alarm.name for alarm in usual}
    return usual + [alarm for alarm in whole if alarm.name not in names]


def sections() -> dict[str, str]:
    """Of the alarms, by anchor."""
    found = PAGE.partition("\n## Alarms\n")[2].split("\n### ")[1:]
    return {each.splitlines()[0].lower().replace(" ", "-"): each for each in found}


def anchor(alarm: Alarm) -> str:
    named = RUNBOOK.search(alarm.description)
    assert named, alarm.description
    return named[1]


def test_every_alarm_names_its_own_section_and_every_section_is_of_one(
    alarms: list[Alarm],
) -> None:
    named = [anchor(alarm) for alarm in alarms]
    assert sorted(named) == sorted(sections())
    for alarm in alarms:
        assert anchor(alarm).replace("-", "") == alarm.name.lower()


@pytest.mark.parametrize("title", sorted(sections()))
def test_each_section_says_what_it_means_how_to_look_what_to_do_and_when_it_is_over(
    title: str,
) -> None:
    assert re.findall(r"^\*\*(.+?)\*\*", sections()[title], re.MULTILINE) == PARTS


def test_the_table_lists_every_alarm_with_what_it_costs(alarms: list[Alarm]) -> None:
    told = {
        re.sub(r"\[(\w+)\].*", r"\1", name): float(dollars)
        for name, *_, dollars in rows(PAGE.partition("\n## Alarms\n")[2].partition("\n###")[0])
        if name != "alarm"
    }
    each = price("alarm_month")
    assert told == {a.name: pytest.approx(each * len(a.watched)) for a in alarms}


def test_queries_look_for_actions_that_are_logged() -> None:
    queries = re.findall(r"filter action (?:= |in )(\"[a-z-]+\"|\[.*?\])", PAGE)
    asked = {action for query in queries for action in re.findall(r'"([a-z-]+)"', query)}
    table = OBSERVABILITY.partition("\n## The log\n")[2].partition("\n## ")[0]
    assert len(queries) > 8
    assert asked <= set(re.findall(r"`([a-z-]+)`", table))


def test_open_places_have_a_row_for_each_reason_here_and_in_the_reference() -> None:
    reference = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    shown = reference.partition("\n### Wheel\n")[2].partition("\n### ")[0]
    for text in (sections()["open-places"], shown):
        words = [row[0].strip("`") for row in rows(text) if row[0].startswith("`")]
        assert [word for word in words if word != "why"] == [why.value for why in Why]
    for number in (OPEN_PLACES_MAX, OPEN_PLACES_SHOWN):
        assert re.search(rf"\b{number:,}\b", shown)


def test_parameters_that_are_named_are_those_of_the_template() -> None:
    template = (ROOT / "template.yaml").read_text(encoding="utf-8")
    metrics = {name for name, *_ in rows(OBSERVABILITY)}
    others = {"AlarmTopic", "AccessDenied", "Errors", "INFO", "DEBUG"}
    for name in set(re.findall(r"`([A-Z][A-Za-z]+)`", PAGE)) - metrics - others:
        assert re.search(rf"^  {name}:$", template, re.MULTILINE), name
