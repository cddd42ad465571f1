"""A day in a moment."""

from datetime import timedelta

from shop.orders import PAID_WITHIN


def test_an_unpaid_order_is_closed_after_a_day_and_not_before(duewheel, shop):
    shop.put("/orders/17")
    duewheel.advance("23h")
    assert shop.get("/orders/17").json() == {"status": "open"}
    assert duewheel.advance("1h") == 1
    assert shop.get("/orders/17").json() == {"status": "closed"}
    assert shop.post("/orders/17/payment").status_code == 409


def test_a_paid_order_stays_paid_and_is_not_called_back(duewheel, shop):
    shop.put("/orders/17")
    duewheel.advance("23h")
    assert shop.post("/orders/17/payment").json() == {"status": "paid"}
    assert duewheel.advance("30d") == 0
    assert shop.get("/orders/17").json() == {"status": "paid"}


def test_orders_close_each_at_its_own_instant(duewheel, shop):
    for number in range(4):
        shop.put(f"/orders/{number}")
        duewheel.advance("1h")
    assert duewheel.advance(PAID_WITHIN - timedelta(hours=2.5)) == 2
    statuses = [shop.get(f"/orders/{number}").json()["status"] for number in range(4)]
    assert statuses == ["closed", "closed", "open", "open"]


def test_an_unsigned_call_closes_no_order(shop):
    shop.put("/orders/17")
    forged = shop.post("/orders/close", json={"order": 17}, headers={"webhook-id": "AQG5"})
    assert forged.status_code == 401
    assert shop.get("/orders/17").json() == {"status": "open"}


def test_a_shop_that_is_down_is_called_again(duewheel, orders_called_at):
    """An inbox of the stack in the shop's place: its answer can be set, and it stores requests."""
    orders = orders_called_at(duewheel.inbox_url("shop"))
    duewheel.answer("shop", status=503, times=2)
    orders.place(17)
    assert duewheel.advance("2d") == 1
    calls = duewheel.inbox("shop")
    assert [call.headers["duewheel-attempt"] for call in calls] == ["1", "2", "3"]
    assert [call.json for call in calls] == [{"order": 17}] * 3
