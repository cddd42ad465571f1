"""What the shop leaves to Duewheel, a day or a year in a moment."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest


@pytest.fixture
def duewheel_starts_at():
    return datetime(2030, 1, 31, 12, tzinfo=UTC)


def placed(shop, *numbers, customer="ada"):
    for number in numbers:
        shop.put(f"/orders/{number}", params={"customer": customer})


def status(shop, number):
    return shop.get(f"/orders/{number}").json()["status"]


def test_an_unpaid_order_is_closed_after_a_day_and_not_before(duewheel, shop):
    placed(shop, 17)
    duewheel.advance("23h59m")
    assert status(shop, 17) == "open"
    duewheel.advance("1m")
    assert status(shop, 17) == "closed"
    assert shop.post("/orders/17/payment").status_code == 409


def test_a_payment_cancels_the_closing(duewheel, shop, bank):
    placed(shop, 17)
    assert shop.post("/orders/17/payment").status_code == 202
    duewheel.advance("1s")
    assert (status(shop, 17), bank.charged) == ("paid", [17])
    assert duewheel.client.tasks.get_by_key("orders", "order-17:close").status == "cancelled"


def test_an_order_that_is_placed_or_paid_twice_is_closed_and_charged_once(duewheel, shop, bank):
    placed(shop, 17, 17)
    for _ in range(3):
        shop.post("/orders/17/payment")
    duewheel.advance("25h")
    assert (status(shop, 17), bank.charged) == ("paid", [17])


def test_a_bank_that_is_down_is_asked_again(duewheel, shop, bank):
    bank.failures = 3
    placed(shop, 17)
    shop.post("/orders/17/payment")
    duewheel.advance("1s")
    assert status(shop, 17) == "paying"
    duewheel.advance("1h")
    assert status(shop, 17) == "paid"
    assert duewheel.client.tasks.get_by_key("orders", "order-17:charge").attempts == 4


def test_mails_to_a_customer_keep_their_order_and_the_mail_servers_pace(duewheel, shop, database):
    placed(shop, *range(10), customer="ada")
    placed(shop, *range(10, 20), customer="bob")
    for number in range(0, 20, 2):
        shop.post(f"/orders/{number}/payment")
    duewheel.advance("25h")
    for customer in ("ada", "bob"):
        found = database.rows("select text from mails where customer = ? order by rowid", customer)
        last_words = [text.split(" is ")[1] for (text,) in found]
        assert last_words == ["paid."] * 5 + ["closed: it was not paid."] * 5
    calls = sorted(task.history[-1].at for task in duewheel.client.tasks.list("mails"))
    closing = calls[10:]  # ten orders of one instant
    assert min(later - earlier for earlier, later in pairwise(closing)) >= timedelta(seconds=0.199)


def test_a_till_that_falls_silent_is_reported_once(duewheel, shop, database):
    for _ in range(10):
        assert shop.post("/tills/3/beat").status_code == 204
        duewheel.advance("1m")
    assert database.rows("select * from alerts") == []
    duewheel.advance("1h")
    assert database.rows("select * from alerts") == [("Till 3 is silent.",)]


def test_each_night_has_its_report_and_each_report_says_how_far_it_was(duewheel, shop, database):
    placed(shop, 17, 18)
    duewheel.advance("39h")
    reports = dict(database.rows("select * from reports"))
    assert list(reports) == ["2030-02-01", "2030-02-02"]
    assert reports["2030-02-01"] == "2 open, 0 paying, 0 paid, 0 closed"
    (timer,) = duewheel.client.timers.list("reports")
    first = next(iter(duewheel.client.timers.runs(timer.timer_id)))
    assert first.status == "delivered"


def test_a_forged_call_changes_nothing(duewheel, shop):
    placed(shop, 17)
    forged = shop.post(
        "/duewheel", json={"do": "close", "order": 17}, headers={"webhook-id": "AQG5"}
    )
    assert forged.status_code == 401
    assert status(shop, 17) == "open"
