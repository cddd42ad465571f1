"""Who is told of an outcome, and what a notice calls."""

from typing import Any

from msgspec.structs import replace

from duewheel.rules.businesses.settings import Business, Defaults, Own
from duewheel.rules.callbacks.outcome import Outcome
from duewheel.rules.callbacks.secret_headers import NamedSecret
from duewheel.rules.callbacks.types import HttpCallback, OnOutcome, Told
from duewheel.rules.tasks.effective_callback import callback_to_make
from duewheel.rules.tasks.outcome_notice import asked_for, asked_for_runs
from duewheel.rules.tasks.task import Plan, Task
from duewheel.rules.wheel.addresses import address_at
from tests.support.cases import each_case

HOOK, OTHER = HttpCallback("https://a.example/told"), HttpCallback("https://b.example/told")
SECRET = HttpCallback("https://c.example/told", headers=(("authorization", "{{secret:token}}"),))
TOKEN = (NamedSecret("token", "id-1"),)
ALL = OnOutcome(tuple(Told), HOOK)
DEATHS, DELIVERIES = OnOutcome((Told.DEAD,), OTHER), OnOutcome((Told.DELIVERED,), OTHER)
TASK = Task.at(address_at(1_000, b"0" * 8), "orders", 1_000, 0, HttpCallback("https://a.example/"))


def business(**own: Any) -> Business:
    return Business("orders", Defaults(30, 10.0, 30.0), Own(**own))


@each_case(
    "own, usual, told, who",
    [
        (None, None, Told.DEAD, None),
        (None, DEATHS, Told.EXPIRED, None),
        (None, ALL, Told.EXPIRED, "business"),
        (DELIVERIES, ALL, Told.DELIVERED, "own"),
        (DELIVERIES, ALL, Told.DEAD, "business"),
        (DEATHS, None, Told.DEAD, "own"),
        (DEATHS, None, Told.CANCELLED, None),
    ],
)
def test_the_nearest_that_asks_for_the_outcome_is_told(
    own: OnOutcome | None,
    usual: OnOutcome | None,
    told: Told,
    who: str | None,
) -> None:
    asked = asked_for(replace(TASK, on_outcome=own), told, business(on_outcome=usual))
    assert asked is {None: None, "own": own, "business": usual}[who]


@each_case("told", Told)
def test_what_became_of_a_notice_or_of_an_internal_task_is_told_to_nobody(told: Told) -> None:
    of = business(on_outcome=ALL)
    notice = replace(TASK, notice_of="AQG5dxdnQAAAeOt8N-CZJxW76LPH", on_outcome=ALL)
    plan = replace(TASK, plan=Plan("1099511627776", 0, 0))
    assert asked_for(notice, told, of) is None
    assert asked_for(plan, told, of) is None


def test_missed_runs_are_told_to_the_timer_or_to_its_business() -> None:
    assert asked_for_runs(ALL, business(on_outcome=DEATHS)) is ALL
    assert asked_for_runs(DEATHS, business(on_outcome=ALL)) is ALL
    assert asked_for_runs(DEATHS, business(on_outcome=DELIVERIES)) is None


def notice(callback: HttpCallback) -> Task:
    return replace(TASK, callback=callback, notice_of="AQG5dxdnQAAAeOt8N-CZJxW76LPH")


def test_a_notice_calls_what_was_asked_for_and_nothing_fills_it_in() -> None:
    usual = HttpCallback("https://a.example/usual", "PUT", headers=(("x-token", "1"),))
    of = business(callback=usual, on_outcome=DEATHS)
    assert callback_to_make(notice(replace(HOOK, method="")), of) == HOOK


def test_a_secret_goes_to_what_the_admin_has_set_and_to_no_other_notice() -> None:
    set_so = business(secrets=TOKEN, on_outcome=OnOutcome((Told.DEAD,), SECRET))
    elsewhere = replace(SECRET, url="https://d.example/")
    assert callback_to_make(notice(SECRET), set_so) == SECRET
    assert isinstance(callback_to_make(notice(elsewhere), set_so), Outcome)
    assert isinstance(callback_to_make(replace(TASK, callback=SECRET), set_so), Outcome)
    trusting = business(secrets=TOKEN, trusted_origins=("https://d.example",))
    assert callback_to_make(notice(elsewhere), trusting) == elsewhere


def test_a_notice_goes_to_no_host_that_its_business_does_not_allow() -> None:
    allowing = business(allowed_hosts=("a.example",))
    assert callback_to_make(notice(HOOK), allowing) == HOOK
    assert isinstance(callback_to_make(notice(OTHER), allowing), Outcome)
