"""Timers in requests, and the fields that refusals name."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from duewheel.rules.callbacks.types import HttpCallback, RetryPolicy
from duewheel.rules.refusals import InvalidField, MalformedBody, Refusal, TargetNotEnabled, TooLarge
from duewheel.rules.timers.requests import (
    NewTimer,
    Preview,
    TimerChange,
    new_timer,
    preview_request,
    timer_change,
)
from duewheel.rules.timers.schedule import DstGap, DstOverlap, Schedule
from duewheel.rules.timers.timer import Misfire, Overlap, Rules
from duewheel.rules.timers.updates import changed_rules
from tests.support.cases import each_case

NOW_MS = 1_800_000_000_123  # 2027-01-15T08:00:00.123Z
NOW = NOW_MS // 1000
LEAST = {"biz_type": "orders", "name": "close orders", "cron": "0 3 * * *"}
EVERYTHING = {
    **LEAST,
    "timezone": "Europe/London",
    "start_at": "2027-02-01T00:00:00.001Z",
    "end_at": "2028-02-01T00:00:00.999Z",
    "max_runs": 10,
    "jitter_seconds": 30,
    "payload": {"at": "{{due_at}}", "price": 1.0},
    "callback": {"url": "https://receiver.example/"},
    "retry": {"attempts": 2},
    "expires_after_seconds": 60,
    "dst_gap": "skip",
    "dst_overlap": "both",
    "misfire": "all",
    "grace_seconds": 5,
    "overlap": "skip",
    "exclude": ["2027-12-25", "2027-12-26", "2027-12-25"],
    "disable_on_stop": True,
    "pause_on_failures": 3,
    "tolerance_seconds": 60,
    "enabled": False,
}


def made(**members: Any) -> NewTimer:
    return new_timer(json.dumps(LEAST | members), NOW_MS)


def test_a_timer_needs_only_a_business_a_name_and_a_schedule() -> None:
    assert made() == NewTimer("orders", Rules("close orders", Schedule(cron="0 3 * * *")), True)


def test_all_fields_of_a_timer_are_read() -> None:
    assert new_timer(json.dumps(EVERYTHING), NOW_MS) == NewTimer(
        "orders",
        Rules(
            "close orders",
            Schedule(
                cron="0 3 * * *",
                timezone="Europe/London",
                start_second=1_801_440_001,
                end_second=1_832_976_000,
                dst_gap=DstGap.SKIP,
                dst_overlap=DstOverlap.BOTH,
                exclude=("2027-12-25", "2027-12-26"),
            ),
            max_runs=10,
            jitter_seconds=30,
            payload='{"at": "{{due_at}}", "price": 1.0}',
            callback=HttpCallback("https://receiver.example/", method=""),
            retry=RetryPolicy(attempts_max=2),
            expires_after_seconds=60.0,
            misfire=Misfire.ALL,
            grace_seconds=5,
            overlap=Overlap.SKIP,
            disable_on_stop=True,
            pause_on_failures=3,
            tolerance_seconds=60,
        ),
        False,
    )


def test_null_is_the_default() -> None:
    reset = {name: None for name in EVERYTHING if name not in (*LEAST, "payload")}
    assert made(**reset) == made()


def test_an_interval_counts_from_its_start_or_from_now() -> None:
    assert made(cron=None, every_seconds=90).rules.schedule.anchor_second == NOW
    start = made(cron=None, every_seconds=90, start_at="2027-02-01T00:00:00Z").rules.schedule
    assert start.anchor_second == start.start_second == 1_801_440_000


BAD: list[tuple[dict[str, Any], str]] = [
    ({"biz_type": "NO"}, "biz_type"),
    ({"name": ""}, "name"),
    ({"name": " padded"}, "name"),
    ({"name": "two\nlines"}, "name"),
    ({"name": "n" * 129}, "name"),
    ({"name": 5}, "name"),
    ({"name": None}, "name"),
    ({"cron": "every day"}, "cron"),
    ({"cron": ""}, "cron"),
    ({"cron": "0 0 30 2 *"}, "cron"),
    ({"cron": "* " * 300}, "cron"),
    ({"cron": None}, "cron"),
    ({"every_seconds": 60}, "every_seconds"),
    ({"cron": None, "every_seconds": 0}, "every_seconds"),
    ({"cron": None, "every_seconds": 0.5}, "every_seconds"),
    ({"cron": None, "every_seconds": 366 * 86_400 + 1}, "every_seconds"),
    ({"cron": None, "every_seconds": 60, "dst_gap": "skip"}, "dst_gap"),
    ({"cron": None, "every_seconds": 60, "dst_overlap": "both"}, "dst_overlap"),
    ({"cron": None, "every_seconds": 60, "jitter_seconds": 60}, "jitter_seconds"),
    ({"timezone": "Mars/Olympus"}, "timezone"),
    ({"timezone": ""}, "timezone"),
    ({"timezone": "Europe/" * 20}, "timezone"),
    ({"timezone": "../etc/passwd"}, "timezone"),
    ({"start_at": "soon"}, "start_at"),
    ({"start_at": "1969-12-31T23:59:59Z"}, "start_at"),
    ({"end_at": "9999-01-01T00:00:00Z"}, "end_at"),
    ({"end_at": "2026-01-01T00:00:00Z"}, "end_at"),
    ({"start_at": "2027-03-01T00:00:00Z", "end_at": "2027-02-01T00:00:00Z"}, "end_at"),
    ({"max_runs": 0}, "max_runs"),
    ({"max_runs": 1.5}, "max_runs"),
    ({"jitter_seconds": -1}, "jitter_seconds"),
    ({"jitter_seconds": 86_400}, "jitter_seconds"),
    ({"tolerance_seconds": -1}, "tolerance_seconds"),
    ({"tolerance_seconds": 3_601}, "tolerance_seconds"),
    ({"payload": "{{colour}}"}, "payload"),
    ({"payload": {}, "callback": {"url": "https://r.example/", "body": "raw"}}, "payload"),
    ({"callback": {"url": "ftp://r.example/"}}, "callback.url"),
    ({"callback": "https://r.example/"}, "callback"),
    ({"retry": {"attempts": 0}}, "retry.attempts"),
    ({"expires_after_seconds": 0}, "expires_after_seconds"),
    ({"dst_gap": "jump"}, "dst_gap"),
    ({"dst_overlap": "never"}, "dst_overlap"),
    ({"misfire": "some"}, "misfire"),
    ({"grace_seconds": -1}, "grace_seconds"),
    ({"grace_seconds": 30 * 86_400 + 1}, "grace_seconds"),
    ({"overlap": True}, "overlap"),
    ({"exclude": "2027-12-25"}, "exclude"),
    ({"exclude": ["2027-12-25", "25.12.2027"]}, "exclude[1]"),
    ({"exclude": ["2027-02-30"]}, "exclude[0]"),
    ({"exclude": ["20271225"]}, "exclude[0]"),
    ({"exclude": ["2027-W01-1"]}, "exclude[0]"),
    ({"exclude": [20271225]}, "exclude[0]"),
    ({"exclude": ["2027-12-25"] * 367}, "exclude"),
    ({"disable_on_stop": "yes"}, "disable_on_stop"),
    ({"pause_on_failures": 0}, "pause_on_failures"),
    ({"pause_on_failures": 101}, "pause_on_failures"),
    ({"pause_on_failures": True}, "pause_on_failures"),
    ({"overlap": "buffer-one"}, "overlap"),
    ({"enabled": 1}, "enabled"),
    ({"timer_id": "1"}, "timer_id"),
    ({"dialect": "cronexpr"}, "dialect"),
    ({"colour": "red"}, "colour"),
]


@each_case(("members", "field"), BAD)
def test_bad_input_names_its_field(members: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidField) as refused:
        made(**members)
    assert refused.value.field == field


@each_case(
    ("body", "kind"),
    [
        ("[]", MalformedBody),
        ('{"biz_type": "orders", "name": "a", "name": "b"}', InvalidField),
        (json.dumps({**LEAST, "payload": "x" * 65_535}), TooLarge),
        (json.dumps({**LEAST, "callback": {"type": "lambda", "function": "f"}}), TargetNotEnabled),
        (json.dumps({"biz_type": "orders", "cron": "* * * * *"}), InvalidField),
        (json.dumps({"name": "a", "cron": "* * * * *"}), InvalidField),
    ],
)
def test_bad_bodies_are_refused(body: str, kind: type[Refusal]) -> None:
    with pytest.raises(kind):
        new_timer(body, NOW_MS)


def test_a_change_contains_the_fields_of_its_body() -> None:
    body = '{"cron": "5 3 * * *", "max_runs": null, "payload": null, "enabled": false}'
    values = {"cron": "5 3 * * *", "max_runs": None, "payload": "null"}
    assert timer_change(body) == TimerChange(values, enabled=False)
    assert timer_change('{"name": "b"}') == TimerChange({"name": "b"}, enabled=None)
    assert timer_change('{"enabled": null}') == TimerChange({}, enabled=True)


@each_case("body", ["{}", '{"biz_type": "other"}', '{"timer_id": "1"}'])
def test_a_change_without_changeable_fields_is_refused(body: str) -> None:
    with pytest.raises((InvalidField, MalformedBody)):
        timer_change(body)


def changed(rules: Rules, **members: Any) -> Rules:
    return changed_rules(rules, timer_change(json.dumps(members)).values, NOW + 1_000)


def test_a_change_is_checked_together_with_the_fields_that_stay() -> None:
    interval = made(cron=None, every_seconds=60).rules
    with pytest.raises(InvalidField, match="every_seconds"):
        changed(interval, cron="* * * * *")
    by_cron = changed(interval, cron="* * * * *", every_seconds=None)
    assert (by_cron.schedule.every_seconds, by_cron.schedule.anchor_second) == (None, 0)
    with pytest.raises(InvalidField, match="jitter_seconds"):
        changed(interval, jitter_seconds=60)
    raw = made(payload="text", callback={"url": "https://r.example/", "body": "raw"}).rules
    with pytest.raises(InvalidField, match="payload"):
        changed(raw, payload={"order": 17})


def test_an_interval_gets_a_new_anchor_only_when_it_changes() -> None:
    interval = made(cron=None, every_seconds=60).rules
    assert changed(interval, name="other").schedule == interval.schedule
    assert changed(interval, every_seconds=90).schedule.anchor_second == NOW + 1_000
    start = {"start_at": "2027-02-01T00:00:00Z"}
    assert changed(interval, **start).schedule.anchor_second == 1_801_440_000


def test_a_timer_past_its_end_may_be_changed_but_not_to_another_schedule_past_its_end() -> None:
    rules = made().rules
    over = replace(rules, schedule=replace(rules.schedule, end_second=NOW - 1))
    assert changed(over, payload=[1]).payload == "[1]"
    with pytest.raises(InvalidField, match="end_at"):
        changed(over, timezone="Europe/London")


def test_a_preview_takes_a_schedule() -> None:
    body = '{"every_seconds": 90, "max_runs": 3, "count": 5, "from": "2027-02-01T00:00:00Z"}'
    schedule = Schedule(every_seconds=90, anchor_second=NOW)
    rules = Rules("", schedule, max_runs=3)
    assert preview_request(body, NOW_MS) == Preview(rules, 5, 1_801_440_000_000)
    assert preview_request('{"cron": "* * * * *"}', NOW_MS).count == 10


@each_case(
    ("body", "field"),
    [
        ('{"count": 5}', "cron"),
        ('{"cron": "* * * * *", "count": 0}', "count"),
        ('{"cron": "* * * * *", "count": 101}', "count"),
        ('{"cron": "* * * * *", "from": 5}', "from"),
        ('{"cron": "* * * * *", "name": "a"}', "name"),
    ],
)
def test_a_bad_preview_names_its_field(body: str, field: str) -> None:
    with pytest.raises(InvalidField) as refused:
        preview_request(body, NOW_MS)
    assert refused.value.field == field
