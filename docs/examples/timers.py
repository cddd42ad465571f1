"""The stories behind the examples of timers, by `/v1/timers` and by the xTimer interface."""

from docs.examples.calls import HOOK
from docs.examples.teller import INBOX, Story, Teller

PATH = "/v1/timers"
DEF = "/api/timer/v1/def"


def defining(teller: Teller) -> None:
    new = {
        "biz_type": "orders",
        "name": "close unpaid orders",
        "cron": "30 2 * * MON-FRI",
        "timezone": "Europe/London",
        "payload": {"day": "{{due_at}}", "run": "{{number}}"},
        "callback": HOOK,
    }
    ahead = {name: new[name] for name in ("cron", "timezone")}
    body = {**ahead, "count": 3, "from": "2030-03-29T00:00:00Z"}
    teller.example("timer-preview", "POST", f"{PATH}/upcoming", body)
    timer = teller.example("timer-create", "POST", PATH, new)
    path = f"{PATH}/{timer['timer_id']}"
    teller.example("timer-upcoming", "GET", f"{path}/upcoming?count=2")
    change = {"cron": "0 3 * * MON-FRI", "misfire": "all"}
    teller.example("timer-change", "PATCH", path, change, {"If-Match": '"1"'})
    teller.example("timer-disable", "POST", f"{path}/disable")
    teller.example("timer-list", "GET", f"{PATH}?biz_type=orders&name_prefix=close&state=disabled")
    teller.example("timer-enable", "POST", f"{path}/enable")
    teller.example("timer-delete", "DELETE", path)
    teller.example("timer-changes", "GET", f"{path}/changes")


def running(teller: Teller) -> None:
    new = {
        "biz_type": "orders",
        "name": "remind",
        "every_seconds": 900,
        "payload": {"run": "{{number}}"},
        "callback": {"url": f"{INBOX}/orders"},
        "retry": {"attempts": 1},
    }
    timer = teller.call("POST", PATH, new)
    path = f"{PATH}/{timer['timer_id']}"
    teller.advance(900)
    teller.call("PUT", "/_local/received/orders", {"status": 410, "times": 1})
    teller.advance(900)
    teller.received("timer-callback", "orders")
    teller.example("timer-read", "GET", path)
    teller.example("timer-runs", "GET", f"{path}/runs?limit=1")
    teller.example("timer-run", "POST", f"{path}/run")


def by_name(teller: Teller) -> None:
    path = f"{PATH}/by-name/orders/close-unpaid"
    whole = {
        "cron": "30 2 * * MON-FRI",
        "callback": {"url": "https://example.com/hook"},
        "managed_by": "orders/timers",
    }
    teller.example("timer-put", "PUT", path, whole)
    teller.call("PUT", path, whole)
    earlier = {**whole, "cron": "0 2 * * MON-FRI"}
    teller.example("timer-put-dry", "PUT", f"{path}?dry_run=true", earlier)
    teller.example("timer-read-by-name", "GET", path)
    teller.example("timer-delete-by-name", "DELETE", path)


def as_xtimer(teller: Teller) -> None:
    new = {
        "app": "OrderService",
        "name": "close unpaid orders",
        "cron": "0 30 8 * * * *",
        "notifyHTTPParam": {
            "url": f"{INBOX}/orders",
            "method": "POST",
            "header": {"content-type": ["application/json"], "x-team": ["billing", "orders"]},
            "body": '{"order": 17}',
        },
    }
    timer_id = teller.example("xtimer-create", "POST", DEF, new)["id"]
    named = {"id": timer_id, "app": "OrderService"}
    teller.example("xtimer-enable", "POST", "/api/timer/v1/enable", named)
    teller.example("xtimer-read", "GET", f"{DEF}?id={timer_id}&app=OrderService")
    teller.advance(1_800)
    teller.received("xtimer-callback", "orders")
    teller.example("xtimer-records", "GET", f"/api/task/v1/records?timerID={timer_id}&pageSize=1")
    teller.example("xtimer-unable", "POST", "/api/timer/v1/unable", named)
    teller.example("xtimer-list", "GET", "/api/timer/v1/defs?app=OrderService&pageSize=1")
    teller.example("xtimer-delete", "DELETE", DEF, named)
    teller.example("xtimer-refused", "POST", DEF, {**new, "cron": "0 0 30 2 *"})
    teller.example("xtimer-malformed", "POST", DEF, '{"app": "OrderService"}')


STORIES = (Story(defining), Story(running), Story(by_name), Story(as_xtimer))
