"""The story behind the examples of the xTimer interface."""

from docs.examples.teller import INBOX, Story, Teller

DEF = "/api/timer/v1/def"


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
    teller.example("xtimer-document", "GET", "/api/openapi.json")


STORIES = (Story(as_xtimer),)
