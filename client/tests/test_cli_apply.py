"""`duewheel timer apply` makes the timers of the stack those of the files, and no others."""

import json
from pathlib import Path
from typing import Any

import pytest

from duewheel import Duewheel
from duewheel._sync.timers import Timers
from duewheel.cli.definitions import read_definitions
from tests.cli_support import called, done, value, values
from tests.support import Script

HOOK = "https://example.com/hook"


@pytest.fixture(autouse=True)
def _on_the_stack(stack_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUEWHEEL_URL", stack_url)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "timers.yaml"


def declare(file: Path, biz_type: str, *timers: dict[str, Any], managed_by: str = "team") -> None:
    content = {"biz_type": biz_type, "managed_by": managed_by, "timers": timers}
    file.write_text(json.dumps(content))  # which is YAML as well


def hourly(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "cron": "0 * * * *", "callback": HOOK, **fields}


def actions(*arguments: Any) -> list[tuple[str, str]]:
    found = values("timer", "apply", *map(str, arguments))
    return [(step["action"], step["name"]) for step in found]


def names(client: Duewheel, biz_type: str) -> list[str]:
    return [timer.name for timer in client.timers.list(biz_type)]


def test_a_file_is_made_then_unchanged_then_changed(
    client: Duewheel, biz_type: str, file: Path
) -> None:
    declare(file, biz_type, hourly("a"), hourly("b", payload={"n": 1}, timezone="Asia/Shanghai"))
    assert actions(file) == [("create", "a"), ("create", "b")]
    made = client.timers.get_by_name(biz_type, "b")
    assert (made.managed_by, made.payload, made.timezone) == ("team", {"n": 1}, "Asia/Shanghai")
    assert actions(file) == [("none", "a"), ("none", "b")]
    declare(file, biz_type, hourly("a"), hourly("b", payload={"n": 2}))
    dry = called("timer", "apply", str(file), "--dry-run", "--json")
    (_, step) = map(json.loads, dry.stdout.splitlines())
    assert (dry.exit_code, step["action"]) == (5, "change")
    assert step["fields"] == [
        {"field": "payload", "before": {"n": 1}, "after": {"n": 2}},
        {"field": "timezone", "before": "Asia/Shanghai", "after": "UTC"},
    ]
    assert client.timers.get_by_name(biz_type, "b") == made
    text = called("timer", "apply", str(file))
    assert text.exit_code == 0
    assert f"~ {biz_type}/b\n" in text.stdout
    assert '    payload: {"n": 1} -> {"n": 2}\n' in text.stdout
    assert "0 to create, 1 to change, 0 to delete, 1 unchanged" in text.stderr
    assert called("timer", "apply", str(file), "--dry-run").exit_code == 0


def test_prune_deletes_only_timers_of_its_own_sets(
    client: Duewheel, biz_type: str, file: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.json"
    declare(file, biz_type, hourly("a"), hourly("b"))
    declare(other, biz_type, hourly("c"), managed_by="other")
    assert len(actions(file, other)) == 3
    client.timers.create(biz_type, "by hand", cron="0 0 * * *", callback=HOOK)
    declare(file, biz_type)
    assert actions(file) == []
    assert len(names(client, biz_type)) == 4
    assert called("timer", "apply", str(file), "--prune", "--dry-run").exit_code == 5
    refused = called("timer", "apply", str(file), "--prune", stdin="n\n")
    assert (refused.exit_code, len(names(client, biz_type))) == (1, 4)
    assert actions(file, "--prune", "--yes") == [("prune", "a"), ("prune", "b")]
    assert names(client, biz_type) == ["by hand", "c"]


def test_prune_goes_on_behind_a_timer_that_is_gone(
    client: Duewheel, biz_type: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    delete = Timers.delete

    def delete_twice(timers: Timers, timer_id: str, **more: Any) -> None:
        delete(timers, timer_id, **more)
        delete(timers, timer_id, **more)  # the answer to the first one was lost

    monkeypatch.setattr(Timers, "delete", delete_twice)
    declare(file, biz_type, hourly("a"), hourly("b"))
    done("timer", "apply", str(file))
    declare(file, biz_type)
    done("timer", "apply", str(file), "--prune", "--yes")
    assert names(client, biz_type) == []


def test_a_refused_definition_stops_all_before_anything_is_changed(
    client: Duewheel, biz_type: str, file: Path
) -> None:
    declare(file, biz_type, hourly("a"), hourly("b", cron="61 * * * *"), hourly("c d"))
    refused = called("timer", "apply", str(file))
    assert refused.exit_code == 1
    assert f"! {biz_type}/b: " in refused.stderr
    assert "(cron)" in refused.stderr
    assert "(name)" in refused.stderr
    assert "2 of 3 timers are refused. Nothing is changed." in refused.stderr
    assert names(client, biz_type) == []


def test_a_timer_disabled_by_hand_stays_disabled(
    client: Duewheel, biz_type: str, file: Path
) -> None:
    declare(file, biz_type, hourly("a"))
    done("timer", "apply", str(file))
    client.timers.disable(client.timers.get_by_name(biz_type, "a").timer_id)
    assert actions(file) == [("none", "a")]
    declare(file, biz_type, hourly("a", enabled=True))
    assert actions(file) == [("change", "a")]
    assert value("timer", "get", client.timers.get_by_name(biz_type, "a").timer_id)["enabled"]


WRONG = {
    "biz_type: a\nmanaged_by: b\n": "exactly biz_type, managed_by, timers",
    "biz_type: a\nmanaged_by: 7\ntimers: []\n": "managed_by must be a text",
    "biz_type: a\nmanaged_by: b\ntimers: {}\n": "timers must be a list",
    "biz_type: a\nmanaged_by: b\ntimers: [{cron: x}]\n": "timers[0] must have a name",
    "biz_type: a\nmanaged_by: b\ntimers: [{name: x, crom: y}]\n": "timers[0] has crom",
    "biz_type: a\nmanaged_by: b\ntimers: [{name: x, managed_by: y}]\n": "has managed_by",
    "biz_type: a\nmanaged_by: b\ntimers: [{name: x}, {name: x}]\n": "a/x is declared twice",
    "biz_type: a\nbiz_type: b\n": "given twice in line 1",
    "timers: [": "while parsing",
    "{? [a] : b}": "a name in line 1 is no text",
    "{1: b}": "a name in line 1 is no text",
    "biz_type: a\nmanaged_by: b\ntimers: [{name: x, payload: 1e999}]\n": "not JSON",
    "biz_type: a\nmanaged_by: b\ntimers: [{name: x, payload: !!set {a}}]\n": "not JSON",
    "biz_type: a\nmanaged_by: b\ntimers: [{name: x, payload: &a [*a]}]\n": "not JSON",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_file_is_named_and_nothing_is_sent(file: Path, text: str) -> None:
    file.write_text(text)
    script = Script()
    refused = called("timer", "apply", str(file), script=script)
    assert (refused.exit_code, script.requests) == (2, [])
    assert str(file) in refused.stderr
    assert WRONG[text] in refused.stderr


WRONG_JSON = {
    '{"biz_type": "a", "biz_type": "b"}': "biz_type is given twice",
    '{"biz_type": "a", "managed_by": "b", "timers": [{"name": "x", "payload": NaN}]}': "not JSON",
}


@pytest.mark.parametrize("text", WRONG_JSON)
def test_a_wrong_file_of_json_is_refused_like_one_of_yaml(tmp_path: Path, text: str) -> None:
    file = tmp_path / "timers.json"
    file.write_text(text)
    with pytest.raises(ValueError, match=WRONG_JSON[text]):
        read_definitions([file])


def test_texts_of_a_file_stay_texts(file: Path) -> None:
    file.write_text(
        """
biz_type: orders
managed_by: team
timers:
  - name: on
    cron: 0 3 * * *
    start_at: 2030-01-01T00:00:00Z
    exclude: [2030-12-25]
    payload: {at: 12:30, code: 010, yes: [no, true, null, ~, 7, -1.5, 1e3]}
"""
    )
    (found,) = read_definitions([file]).timers
    assert (found.name, found.fields["cron"]) == ("on", "0 3 * * *")
    assert found.fields["start_at"] == "2030-01-01T00:00:00Z"
    assert found.fields["exclude"] == ["2030-12-25"]
    assert found.fields["payload"] == {
        "at": "12:30",
        "code": "010",
        "yes": ["no", True, None, None, 7, -1.5, 1000.0],
    }
