"""The stories behind the examples of the calls, one for each section of the page.

An example takes a line here, and a place in the page: two comments, the first with its name.
"""

from typing import Any
from unittest.mock import patch

from docs.examples.exchange import SHOWN_ADDRESS
from docs.examples.teller import INBOX, Story, StoryError, Teller
from duewheel.rules.wheel.addresses import address_of_task
from duewheel.stores.bulk.operations import OperationStore
from duewheel.wiring import wheel as wheel_wiring
from local.aws.calling_function import as_onlooker

HOOK = {"url": "https://example.com/hook"}  # for tasks that do not come due in their story


def creating(teller: Teller) -> None:
    order = {"biz_type": "orders", "delay_seconds": 1800, "payload": {"order": 17}}
    teller.example("create", "POST", "/v1/tasks", {**order, "callback": HOOK})
    whole = {
        "biz_type": "orders",
        "due_at": "2030-02-01T12:00:00+01:00",
        "key": "order-18:close",
        "payload": {"order": 18, "total": "119.90"},
        "callback": {
            "type": "http",
            "url": "https://example.com/orders/18/close",
            "method": "PUT",
            "headers": {"x-team": "billing"},
        },
        "retry": {"attempts": 5, "first_delay_seconds": 10, "factor": 3, "max_delay_seconds": 600},
        "expires_after_seconds": 3600,
        "tolerance_seconds": 60,
        "priority": "high",
        "flow_key": "customer-7",
        "labels": {"team": "billing"},
    }
    teller.example("create-with-all-fields", "POST", "/v1/tasks", whole)
    key = {"Idempotency-Key": "8e03978e-40d5-43dd-bc93-6894a57f9324"}
    teller.example("create-once", "POST", "/v1/tasks", {**order, "callback": HOOK}, key)
    bad = {**order, "callback": {"url": "ftp://example.com/hook"}}
    batch = {"tasks": [{**order, "callback": HOOK}, bad]}
    teller.example("batch", "POST", "/v1/tasks/batch", batch)


def creating_for_aws(teller: Teller) -> None:
    callback = {
        "type": "sqs",
        "queue_url": "https://sqs.us-east-1.amazonaws.com/123456789012/inbox-queue.fifo",
        "group_id": "order-17",
        "attributes": {"team": "billing"},
    }
    order = {"biz_type": "orders", "delay_seconds": 1800, "payload": {"order": 17}}
    teller.example("create-for-a-queue", "POST", "/v1/tasks", {**order, "callback": callback})


def delivering(teller: Teller) -> None:
    teller.call("PUT", "/_local/received/orders", {"status": 503, "times": 1})
    task = created(
        teller,
        delay_seconds=1800,
        payload={"order": 17},
        callback={"url": f"{INBOX}/orders", "headers": {"x-team": "billing"}},
        retry={"delays_seconds": [5, 60]},
    )
    teller.advance(1805)
    teller.received("callback", "orders")
    teller.example("read", "GET", path_of(task))


def waiting(teller: Teller) -> None:
    teller.call("PUT", "/_local/received/orders", {"status": 503, "times": 1})
    task = created(
        teller,
        delay_seconds=10,
        callback={"url": f"{INBOX}/orders"},
        retry={"delays_seconds": [60]},
    )
    teller.advance(15)
    teller.example("waiting", "GET", path_of(task))


def by_key(teller: Teller) -> None:
    path = "/v1/businesses/devices/tasks/sensor-9"
    beat = {
        "delay_seconds": 300,
        "payload": {"silent": "sensor-9"},
        "callback": HOOK,
        "max_due_at": "2030-01-31T09:00:00Z",
    }
    teller.example("key-put", "PUT", path, beat)
    teller.advance(240)
    teller.example("key-put-again", "PUT", path, beat)
    teller.example("key-read", "GET", path)
    teller.example("key-cancel", "DELETE", path)


def by_key_prefix(teller: Teller) -> None:
    created(teller, key="order-17:close", delay_seconds=1800, callback={"url": f"{INBOX}/orders"})
    created(teller, key="order-17:remind", delay_seconds=600, callback=HOOK)
    created(teller, key="order-18:close", delay_seconds=1800, callback=HOOK)
    path = "/v1/businesses/orders/tasks?key_prefix=order-17:"
    teller.example("prefix-list", "GET", f"{path}&limit=1")
    created(teller, key="order-17:packed", delay_seconds=2, callback={"url": f"{INBOX}/orders"})
    teller.example("prefix-cancel", "DELETE", path)


def changing(teller: Teller) -> None:
    task = created(teller, delay_seconds=1800, payload={"order": 17}, callback=HOOK)
    change = {"due_at": "2030-01-31T10:15:00Z", "payload": {"order": 17, "reminder": 2}}
    teller.example("change", "PATCH", path_of(task), change)
    task = created(teller, delay_seconds=1800, callback={"url": f"{INBOX}/orders"})
    teller.advance(600)
    teller.example(
        "task-pause", "POST", f"{path_of(task)}/pause", {"until": "2030-02-28T00:00:00Z"}
    )
    teller.example("task-resume", "POST", f"{path_of(task)}/resume")
    teller.example("run", "POST", f"{path_of(task)}/run")


def redriving(teller: Teller) -> None:
    teller.call("PUT", "/_local/received/orders", {"status": 410, "times": 1})
    task = created(teller, delay_seconds=1800, callback={"url": f"{INBOX}/orders"})
    teller.advance(3600)
    teller.example("redrive", "POST", f"{path_of(task)}/redrive")


def operating(teller: Teller) -> None:
    """The clock stands still while an operation is carried out, unless it has a pace."""
    for delay in (2, 1800, 1801):
        created(teller, delay_seconds=delay, callback={"url": f"{INBOX}/orders"})
    path = "/v1/operations"
    later = {
        "biz_type": "orders",
        "action": "reschedule",
        "shift_seconds": 3600,
        "filter": {"due_to": "2030-02-01T00:00:00Z"},
    }
    made = teller.example("operation-create", "POST", path, later)
    teller.advance(1)
    of_it = f"{path}/{made['operation_id']}"
    teller.example("operation-read", "GET", of_it)
    teller.example("operation-refused", "GET", f"{of_it}/refused")
    slow = {"biz_type": "orders", "action": "cancel", "filter": {}, "per_second": 1}
    with patch.object(OperationStore, "claim", return_value=None):  # no worker gets it
        stopped = teller.call("POST", path, slow)
        teller.advance(1)
        teller.example("operation-stop", "POST", f"{path}/{stopped['operation_id']}/stop")
        teller.advance(1)
    teller.call("POST", f"{path}/{stopped['operation_id']}/stop")
    teller.advance(1)
    teller.example("operation-list", "GET", f"{path}?biz_type=orders&state=stopped")


def working_on(teller: Teller) -> None:
    """Two tasks whose receiver works on after its answer."""
    going_on = {"status": 202, "headers": {"duewheel-complete-within": "600"}}
    teller.call("PUT", "/_local/received/orders", going_on)
    task, other = (
        created(
            teller,
            delay_seconds=delay,  # the one that is shown is the last one called
            payload={"order": order},
            callback={"url": f"{INBOX}/orders"},
            retry={"delays_seconds": [120]},
        )
        for order, delay in ((17, 60), (18, 59))
    )
    teller.advance(65)
    teller.received("long-callback", "orders")
    first, second = (token_of(teller, one) for one in (task, other))
    progress = {"note": "40 of 120 pages"}
    teller.example("progress", "POST", f"{path_of(task)}/progress", progress, first)
    teller.example("running", "GET", path_of(task))
    teller.example("complete", "POST", f"{path_of(task)}/complete", {"result": "120 pages"}, first)
    failure = {"reason": "the printer is out of paper", "retry_after_seconds": 300}
    teller.example("fail", "POST", f"{path_of(other)}/fail", failure, second)
    teller.call("DELETE", path_of(other))
    teller.example("late-progress", "POST", f"{path_of(other)}/progress", None, second)


def token_of(teller: Teller, task: Any) -> dict[str, str]:
    for request in teller.call("GET", "/_local/received/orders")["requests"]:
        headers = {name.lower(): value for name, value in request["headers"].items()}
        if headers["webhook-id"] == task["task_id"]:
            return {"duewheel-completion-token": headers["duewheel-completion-token"]}
    raise StoryError("the callback was not made")


def cancelling(teller: Teller) -> None:
    early, late = (created(teller, delay_seconds=1800, callback=HOOK) for _ in range(2))
    teller.example("cancel", "DELETE", path_of(early))
    teller.advance(1798)
    teller.example("cancel-too-late", "DELETE", path_of(late))


def listing(teller: Teller) -> None:
    for number in (17, 18):
        created(teller, delay_seconds=60 * number, payload={"order": number}, callback=HOOK)
    path = "/v1/tasks?biz_type=orders&status=pending&due_from=2030-01-31T08:00:00Z&limit=1"
    page = teller.example("list", "GET", path)
    teller.example("list-next", "GET", f"{path}&cursor={page['cursor']}")


def configuring(teller: Teller) -> None:
    path = "/v1/businesses/orders"
    settings = {
        "callback": {"url": f"{INBOX}/orders", "headers": {"x-team": "billing"}},
        "retry": {"attempts": 2, "delays_seconds": [30], "max_age_seconds": 86400},
        "allowed_hosts": ["127.0.0.1", "*.example.com"],
        "on_outcome": {"outcomes": ["dead"], "callback": {"url": f"{INBOX}/dead"}},
    }
    teller.example("business-put", "PUT", path, settings)
    change = {"retention_days": 7, "retry": None}
    teller.example("business-change", "PUT", path, change, {"If-Match": '"1"'})
    teller.example("business-read", "GET", path)
    teller.example("business-list", "GET", "/v1/businesses")
    teller.example("business-changes", "GET", f"{path}/changes")
    teller.call("PUT", "/_local/received/orders", {"status": 410, "times": 2})
    for order in (17, 18):
        created(teller, delay_seconds=60, payload={"order": order})
        teller.advance(90)
    teller.received("on-outcome", "dead")
    teller.example("dead-list", "GET", f"{path}/dead?status_code=410&limit=1")
    wanted = {"status": "dead", "since": "2030-01-31T08:01:00Z", "status_code": 410}
    redrive = {"biz_type": "orders", "action": "redrive", "filter": wanted}
    teller.example("dead-redrive", "POST", "/v1/operations", redrive)
    teller.advance(10)
    created(teller, delay_seconds=1800)
    teller.example("business-delete", "DELETE", f"{path}?cancel_pending=true")


def pausing(teller: Teller) -> None:
    path = "/v1/businesses/orders"
    task = created(teller, delay_seconds=60, callback={"url": f"{INBOX}/orders"})
    teller.example("pause", "POST", f"{path}/pause")
    teller.advance(90)
    teller.example("parked", "GET", path_of(task))
    teller.example("resume", "POST", f"{path}/resume")
    teller.advance(30)


def probing(teller: Teller) -> None:
    """One task waits for a host that keeps failing: after twenty failed calls it is blocked."""
    teller.call("PUT", "/_local/received/orders", {"status": 503, "times": 20})
    for _ in range(20):
        created(teller, delay_seconds=60, callback={"url": f"{INBOX}/orders"})
    task = created(teller, delay_seconds=1800, callback={"url": f"{INBOX}/orders"})
    with patch("duewheel.rules.delivery.circuit_breaker.JITTER", 0):
        teller.advance(61)
    teller.example("run-blocked", "POST", f"{path_of(task)}/run")
    host = SHOWN_ADDRESS
    teller.example("probe", "POST", "/v1/businesses/orders/probe", {"host": host})


def counting(teller: Teller) -> None:
    """One is delivered, one at its second attempt, one is dead, and one is still waiting."""
    path, callback = "/_local/received/orders", {"url": f"{INBOX}/orders"}
    created(teller, delay_seconds=60, callback=callback)
    teller.advance(90)
    for answer, retry in ((503, [30]), (410, [30]), (503, [600])):
        teller.call("PUT", path, {"status": answer, "times": 1})
        created(teller, delay_seconds=60, callback=callback, retry={"delays_seconds": retry})
        teller.advance(120)
    teller.advance(240)
    hour = "from=2030-01-31T08:00:00Z&to=2030-01-31T09:00:00Z"
    teller.example("statistics", "GET", f"/v1/businesses/orders/stats?{hour}")
    teller.call("POST", "/v1/businesses/orders/pause")
    teller.example("overview", "GET", "/v1/overview")


def letting_in(teller: Teller) -> None:
    admin = {"Authorization": f"Bearer {teller.stack.admin_key}"}
    orders = {
        "name": "orders service",
        "grants": [
            {"right": "write", "businesses": "orders"},
            {"right": "read", "businesses": "orders-*"},
        ],
        "expires_at": "2031-01-31T00:00:00Z",
    }
    made = teller.example("api-key-create", "POST", "/v1/keys", orders, admin)
    order = {"biz_type": "orders", "delay_seconds": 1800, "callback": HOOK}
    bearer = {"Authorization": f"Bearer {made['key']}"}
    teller.example("api-key-brought", "POST", "/v1/tasks", order, bearer)
    path = f"/v1/keys/{made['key_id']}"
    teller.example("api-key-rotate", "POST", f"{path}/rotate", {"overlap_seconds": 3600}, admin)
    teller.example("api-key-read", "GET", path, None, admin)
    teller.example("api-key-revoke", "DELETE", path, None, admin)
    teller.example("api-key-changes", "GET", f"{path}/changes", None, admin)
    on_orders = [{"right": "admin", "businesses": name} for name in ("orders", "orders-*")]
    lead = {"name": "lead", "grants": [*on_orders, {"right": "read", "businesses": "*"}]}
    lead_key = teller.call("POST", "/v1/keys", lead, admin)["key"]
    bearer = {"Authorization": f"Bearer {lead_key}"}
    teller.example("api-key-list", "GET", "/v1/keys", None, bearer)


def looking_after(teller: Teller) -> None:
    # So many of one batch are in the forecast for certain, and by their number.
    seconds = [600] * 320 + [630] * 16
    tasks = [{"biz_type": "orders", "delay_seconds": s, "callback": HOOK} for s in seconds]
    for _ in range(2):
        teller.call("POST", "/v1/tasks/batch", {"tasks": tasks})
    teller.advance(300.25)
    teller.example("wheel", "GET", "/v1/wheel")
    teller.example("health", "GET", "/v1/health")
    teller.example("api-document", "GET", "/v1/openapi.json")


def auditing(teller: Teller) -> None:
    task = created(teller, delay_seconds=1800, callback=HOOK)
    damage(task, callback={"S": "nonsense"})
    created(teller, delay_seconds=1800, callback=HOOK)
    quarter = "from=2030-01-31T08:15:00Z&to=2030-01-31T08:31:00Z"
    teller.example("audit", "GET", f"/v1/audit?{quarter}")


def damage(task: Any, **attributes: Any) -> None:
    """Done to the table itself, past the service."""

    def by_hand() -> None:
        tasks, home = wheel_wiring.tasks(), address_of_task(task["task_id"])
        (item,) = tasks.items_at([home])
        tasks.client.put_item(TableName=tasks.table, Item={**item, **attributes})

    as_onlooker(by_hand)


def created(teller: Teller, **members: Any) -> Any:
    return teller.call("POST", "/v1/tasks", {"biz_type": "orders", **members})


def path_of(task: Any) -> str:
    return f"/v1/tasks/{task['task_id']}"


STORIES = (
    Story(creating),
    Story(creating_for_aws),
    Story(delivering),
    Story(waiting),
    Story(by_key),
    Story(by_key_prefix),
    Story(changing),
    Story(redriving),
    Story(operating),
    Story(working_on),
    Story(cancelling),
    Story(listing),
    Story(configuring),
    Story(pausing),
    Story(probing),
    Story(counting),
    Story(letting_in, {"AuthMode": "keys"}),
    Story(looking_after),
    Story(auditing),
)
