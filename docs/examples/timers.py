"""The stories behind the examples of timers."""

from docs.examples.calls import HOOK
from docs.examples.teller import INBOX, Story, Teller

PATH = "/v1/timers"


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


STORIES = (Story(defining), Story(running), Story(by_name))
