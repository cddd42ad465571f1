"""A record of a change names the settings that differ, without secrets."""

from typing import Any

from msgspec.structs import replace

from duewheel.rules.businesses.change_records import business_configured
from duewheel.rules.businesses.flow import Flow, FlowLimits
from duewheel.rules.businesses.settings import Business, Defaults, Own, SigningSecret
from duewheel.rules.callbacks.secret_headers import NamedSecret
from duewheel.rules.callbacks.types import HttpCallback, KeepAnswers, OnOutcome, RetryPolicy, Told
from duewheel.rules.history.changes import (
    SHOWN_CHARACTERS_MAX,
    ChangeAction,
    Difference,
    Hidden,
    deleted,
    differences,
    plain,
)
from duewheel.rules.priority import Priority
from duewheel.rules.timers.change_records import timer_changed, timer_created
from duewheel.rules.timers.schedule import Dialect, DstGap, DstOverlap, Schedule
from duewheel.rules.timers.timer import Misfire, Overlap, Rules, Timer
from tests.support.cases import each_case
from tests.support.clock import NOON_MS

CALLER = "somebody"
BLANK = Business("orders", Defaults(30, 10.0, 30.0))
HOOK = HttpCallback("https://receiver.example/hook?token=1", headers=(("authorization", "2"),))

SETTINGS: dict[str, tuple[Any, Any]] = {
    "callback": (HOOK, None),
    "retry": (RetryPolicy(2, delays_seconds=(30.0,)), {"attempts": 2, "delays_seconds": [30]}),
    "retention_days": (7, 7),
    "timeout_seconds": (2.0, 2),
    "allowed_hosts": (("a.example", "*.b.example"), ["a.example", "*.b.example"]),
    "trusted_origins": (("https://*.b.example",), ["https://*.b.example"]),
    "retry_statuses": ((410, "5xx"), [410, "5xx"]),
    "stop_statuses": ((), []),
    "calls_per_second": (0.5, 0.5),
    "calls_in_flight": (3, 3),
    "creates_per_second": (50.0, 50),
    "signing_secrets": ((SigningSecret("whsec_…abcd", "id-1"),), None),
    "paused": (True, True),
    "secrets": ((NamedSecret("token", "id-1"),), None),
    "tolerance_seconds": (60, 60),
    "priority": (Priority.HIGH, "high"),
    "flow": (
        Flow(FlowLimits(calls_per_second=2.0), {"eu/": FlowLimits(in_order=True)}),
        {"default": {"calls_per_second": 2}, "prefixes": {"eu/": {"in_order": True}}},
    ),
    "paused_flow_keys": (("a", "b"), ["a", "b"]),
    "keep_answers": (KeepAnswers(9, ("date",)), {"body_bytes": 9, "headers": ["date"]}),
    "on_outcome": (OnOutcome((Told.DEAD,), HOOK), None),
}
ONLY_NAMED = {"callback", "signing_secrets", "secrets", "on_outcome"}


def configured(before: Business, **own: Any) -> Business:
    return replace(
        before,
        own=replace(before.own, **own),
        version=before.version + 1,
        created_ms=NOON_MS,
        updated_ms=NOON_MS + before.version,
    )


def timer(**rules: Any) -> Timer:
    base = Rules("close orders", Schedule(cron="0 3 * * *"), callback=HOOK)
    return Timer(
        timer_id="4503599627370496",
        biz_type="orders",
        rules=replace(base, **rules),
        enabled=True,
        version=1,
        created_ms=NOON_MS,
        updated_ms=NOON_MS,
    )


def changed(before: Timer, *, enabled: bool = True, **rules: Any) -> Timer:
    after = replace(before, rules=replace(before.rules, **rules), version=before.version + 1)
    return replace(after, enabled=enabled, updated_ms=NOON_MS + 1)


@each_case("name", Own.__struct_fields__)
def test_a_changed_setting_is_named_and_its_value_shown_unless_it_is_hidden(name: str) -> None:
    value, shown = SETTINGS[name]
    first = configured(BLANK)
    change = business_configured(first, configured(first, **{name: value}), CALLER)
    values = None if name in ONLY_NAMED else (None, shown)
    assert change.differences == (Difference(name, values),)
    assert (change.version, change.at_ms, change.by) == (2, NOON_MS + 1, CALLER)


def test_a_hidden_value_is_not_shown_when_it_is_removed() -> None:
    first = configured(BLANK, callback=HOOK)
    change = business_configured(first, configured(first, callback=None), CALLER)
    assert change.differences == (Difference("callback"),)


@each_case(
    ("before", "settings", "did"),
    [
        (BLANK, {}, ChangeAction.CREATED),
        (BLANK, {"paused": True}, ChangeAction.CREATED),
        (configured(BLANK), {"paused": True}, ChangeAction.PAUSED),
        (configured(BLANK, paused=True), {"paused": None}, ChangeAction.RESUMED),
        (configured(BLANK, paused=True), {"paused": False}, ChangeAction.RESUMED),
        (configured(BLANK), {"paused": False}, ChangeAction.CONFIGURED),
        (configured(BLANK), {"paused": True, "retention_days": 3}, ChangeAction.CONFIGURED),
        (configured(BLANK), {}, ChangeAction.CONFIGURED),
    ],
)
def test_each_action_on_a_business_has_a_word(
    before: Business, settings: dict[str, Any], did: ChangeAction
) -> None:
    assert business_configured(before, configured(before, **settings), CALLER).did is did


def test_a_new_timer_is_recorded_with_its_values_other_than_defaults() -> None:
    change = timer_created(timer(grace_seconds=5), CALLER)
    assert (change.version, change.at_ms, change.did) == (1, NOON_MS, ChangeAction.CREATED)
    assert change.differences == (
        Difference("name", (None, "close orders")),
        Difference("cron", (None, "0 3 * * *")),
        Difference("dialect", (None, "cron")),
        Difference("callback"),
        Difference("grace_seconds", (None, 5)),
        Difference("enabled", (None, True)),
    )


OTHER_RULES: dict[str, tuple[Any, tuple[Any, Any] | None]] = {
    "name": ("archive", ("close orders", "archive")),
    "max_runs": (3, (None, 3)),
    "jitter_seconds": (9, (0, 9)),
    "payload": ('{"card": 1}', None),
    "callback": (None, None),
    "retry": (RetryPolicy(2, 1.0), (None, plain(RetryPolicy(2, 1.0)))),
    "expires_after_seconds": (60.0, (None, 60)),
    "misfire": (Misfire.ALL, ("latest", "all")),
    "grace_seconds": (5, (60, 5)),
    "overlap": (Overlap.SKIP, ("allow", "skip")),
    "disable_on_stop": (True, (False, True)),
    "pause_on_failures": (3, (None, 3)),
    "tolerance_seconds": (60, (0, 60)),
    "priority": (Priority.LOW, (None, "low")),
    "flow_key": ("a", (None, "a")),
    "labels": ((("team", "billing"),), ({}, {"team": "billing"})),
    "managed_by": ("a", (None, "a")),
    "on_outcome": (OnOutcome((Told.DEAD,), HOOK), None),
}
OTHER_SCHEDULE: dict[str, tuple[str, Any, tuple[Any, Any]]] = {
    "cron": ("cron", "0 4 * * *", ("0 3 * * *", "0 4 * * *")),
    "dialect": ("dialect", Dialect.CRONEXPR, ("cron", "cronexpr")),
    "every_seconds": ("every_seconds", 60, (None, 60)),
    "anchor_second": ("every_seconds", 1, (None, None)),
    "timezone": ("timezone", "Europe/London", ("UTC", "Europe/London")),
    "start_second": ("start_at", 0, (None, "1970-01-01T00:00:00.000Z")),
    "end_second": ("end_at", 86_400, (None, "1970-01-02T00:00:00.000Z")),
    "dst_gap": ("dst_gap", DstGap.SKIP, ("shift", "skip")),
    "dst_overlap": ("dst_overlap", DstOverlap.BOTH, ("first", "both")),
    "exclude": ("exclude", ("2031-12-25",), ([], ["2031-12-25"])),
}


@each_case("name", sorted({*Rules.__struct_fields__} - {"schedule"}))
def test_a_changed_rule_of_a_timer_is_named_and_its_value_shown_unless_it_is_hidden(
    name: str,
) -> None:
    value, shown = OTHER_RULES[name]
    change = timer_changed(timer(), changed(timer(), **{name: value}), CALLER)
    assert change.differences == (Difference(name, shown),)
    assert (change.version, change.at_ms, change.did) == (2, NOON_MS + 1, ChangeAction.CHANGED)


@each_case("field", Schedule.__struct_fields__)
def test_each_part_of_a_schedule_has_its_name_in_requests(field: str) -> None:
    name, value, shown = OTHER_SCHEDULE[field]
    schedule = replace(timer().rules.schedule, **{field: value})
    change = timer_changed(timer(), changed(timer(), schedule=schedule), CALLER)
    assert change.differences == (Difference(name, shown),)


def test_an_interval_with_a_new_anchor_is_named_although_its_value_is_the_same() -> None:
    beat = timer(schedule=Schedule(every_seconds=60, anchor_second=1))
    anew = changed(beat, schedule=Schedule(every_seconds=60, anchor_second=2))
    assert timer_changed(beat, anew, CALLER).differences == (Difference("every_seconds", (60, 60)),)


def test_each_action_on_a_timer_has_a_word() -> None:
    off = changed(timer(), enabled=False)
    assert timer_changed(timer(), off, CALLER).did is ChangeAction.DISABLED
    assert timer_changed(off, changed(off), CALLER).did is ChangeAction.ENABLED
    both = changed(timer(), enabled=False, name="other")
    assert timer_changed(timer(), both, CALLER).did is ChangeAction.CHANGED


def test_a_deletion_raises_the_version_and_is_never_earlier_than_the_last_change() -> None:
    business = configured(configured(BLANK))
    gone = deleted(business.version, business.updated_ms, CALLER, NOON_MS - 500)
    assert (gone.version, gone.at_ms, gone.did) == (3, business.updated_ms, ChangeAction.DELETED)
    gone = deleted(timer().version, timer().updated_ms, CALLER, NOON_MS + 500)
    assert (gone.version, gone.at_ms, gone.differences) == (2, NOON_MS + 500, ())


@each_case(("before", "after"), [("", "x"), ("x", ""), ("x", None), (None, "x")])
def test_a_large_value_is_named_and_not_shown(before: str | None, after: str | None) -> None:
    def sized(text: str | None, length: int) -> str | None:
        return text and text * length

    fits = SHOWN_CHARACTERS_MAX - len('""')
    values = sized(before, fits), sized(after, fits)
    assert differences({"name": values[0]}, {"name": values[1]}) == (Difference("name", values),)
    larger = sized(before, fits + 1), sized(after, fits + 1)
    assert differences({"name": larger[0]}, {"name": larger[1]}) == (Difference("name"),)


def test_unchanged_settings_are_not_named() -> None:
    values = {"callback": Hidden(HOOK), "priority": "low", "paused": None}
    assert differences(values, values) == ()
    assert differences({}, {"paused": None}) == ()
