"""The stories behind the examples of the problems: how each of them comes about.

Those that are no caller's fault need a fault of the service. It is made inside the stack's
process; what follows from it is answered over HTTP like all else.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from docs.examples.calls import HOOK, created, damage, path_of, token_of
from docs.examples.teller import INBOX, Story, Teller
from duewheel.rules.access.grants import Access
from duewheel.rules.bulk.open_ones import Marker
from duewheel.rules.bulk.operation import OPEN_MAX
from duewheel.stores.access.api_keys import ApiKeyStore
from duewheel.stores.bulk.operations import OperationStore
from duewheel.stores.dynamodb import Throttled
from duewheel.stores.tasks.tasks import TaskStore
from duewheel.wiring import process

NEW = {"biz_type": "orders", "delay_seconds": 1800, "callback": HOOK}


def by_callers(teller: Teller) -> None:
    post = ("POST", "/v1/tasks")
    teller.example("problem-malformed-body", *post, '{"biz_type": "orders", "payload": NaN}')
    teller.example("problem-malformed-task-id", "GET", "/v1/tasks/order-17")
    teller.example("problem-callback-refused", *post, NEW, {"duewheel-attempt": "1"})
    teller.example("problem-unknown-call", "GET", "/v1/task/17")
    teller.example("problem-method-not-allowed", "PUT", "/v1/tasks")
    teller.example("problem-too-large", *post, {**NEW, "payload": "0123456789" * 6_554})
    teller.example("problem-invalid-field", *post, {**NEW, "delay_seconds": -1})
    function = {"type": "lambda", "function": "close-order:prod"}
    teller.example("problem-target-not-enabled", *post, {**NEW, "callback": function})


def by_access(teller: Teller) -> None:
    teller.example("problem-not-permitted", "POST", "/v1/tasks", NEW)


def by_api_key(teller: Teller) -> None:
    new = {"name": "orders service", "grants": [{"right": "write", "businesses": "orders"}]}
    path = f"/v1/keys/{teller.call('POST', '/v1/keys', new)['key_id']}"
    teller.call("DELETE", path)
    teller.example("problem-api-key-ended", "POST", f"{path}/rotate")
    teller.advance(91 * 86_400)
    teller.example("problem-unknown-api-key", "GET", path)
    # An admin of all businesses has no limit.
    with (
        patch.object(ApiKeyStore, "is_full", return_value=True),
        patch.object(Access, "may", return_value=False),
    ):
        teller.example("problem-too-many-api-keys", "POST", "/v1/keys", new)


def by_the_state_of_a_task(teller: Teller) -> None:
    near = created(teller, delay_seconds=2, callback={"url": f"{INBOX}/orders"})
    teller.example("problem-too-late", "PATCH", path_of(near), {"delay_seconds": 60})
    keyed = {"key": "order-17:close", "callback": HOOK}
    task = created(teller, **keyed, delay_seconds=1800)
    other = {"biz_type": "orders", **keyed, "delay_seconds": 60}
    teller.example("problem-key-taken", "POST", "/v1/tasks", other)
    teller.example("problem-not-redrivable", "POST", f"{path_of(task)}/redrive")
    teller.call("DELETE", path_of(task))
    teller.example("problem-already-settled", "POST", f"{path_of(task)}/run")
    long = created(teller, delay_seconds=2, callback={"url": f"{INBOX}/orders"})
    teller.advance(5)
    token = token_of(teller, long)
    teller.example("problem-not-running", "POST", f"{path_of(long)}/fail", None, token)
    wrong = {"duewheel-completion-token": "0.1.AAAAAAAAAAAAAAAAAAAAAA"}
    teller.example("problem-invalid-token", "POST", f"{path_of(long)}/fail", None, wrong)
    teller.advance(31 * 86_400)
    teller.example("problem-unknown-task", "GET", path_of(task))


def by_a_timer(teller: Teller) -> None:
    timer = {"biz_type": "orders", "name": "close unpaid orders", "cron": "* * * * *"}
    teller.call("PUT", "/v1/businesses/orders", {"callback": {"url": f"{INBOX}/orders"}})
    path = f"/v1/timers/{teller.call('POST', '/v1/timers', timer)['timer_id']}"
    teller.advance(600)
    (planned, *_) = teller.call("GET", "/v1/tasks?biz_type=orders&status=pending")["tasks"]
    later = {"delay_seconds": 7200}
    teller.example("problem-of-a-timer", "PATCH", path_of(planned), later)
    teller.example("problem-has-timers", "DELETE", "/v1/businesses/orders")
    teller.call("DELETE", path)
    teller.example("problem-unknown-timer", "GET", path)
    for _ in range(2):
        teller.call("POST", "/v1/timers", {**timer, "name": "close-unpaid"})
    teller.example("problem-timers-share-name", "GET", "/v1/timers/by-name/orders/close-unpaid")


def by_the_state_of_a_business(teller: Teller) -> None:
    path = "/v1/businesses/orders"
    teller.example("problem-unknown-business", "GET", path)
    teller.call("PUT", path, {"callback": HOOK})
    old = {"If-Match": '"3"'}
    teller.example("problem-version-mismatch", "PUT", path, {"retention_days": 7}, old)
    created(teller, delay_seconds=1800)
    teller.example("problem-tasks-pending", "DELETE", path)
    teller.call("PUT", path, {"creates_per_second": 0.1})
    created(teller, delay_seconds=1800)
    teller.example("problem-too-many-creates", "POST", "/v1/tasks", NEW)


def by_operations(teller: Teller) -> None:
    path, new = "/v1/operations", {"biz_type": "orders", "action": "cancel", "filter": {}}
    teller.example("problem-unknown-operation", "GET", f"{path}/orders~17")
    made = teller.call("POST", path, new)
    teller.advance(1)
    of_it = f"{path}/{made['operation_id']}"
    teller.example("problem-operation-ended", "POST", f"{of_it}/stop")
    of_others = [Marker("other", number, made["operation_id"]) for number in range(OPEN_MAX)]
    with patch.object(OperationStore, "markers", return_value=of_others):
        teller.example("problem-too-many-operations", "POST", path, new)


def by_idempotency_key(teller: Teller) -> None:
    key = {"Idempotency-Key": "8e03978e-40d5-43dd-bc93-6894a57f9324"}
    with patch.object(TaskStore, "create", side_effect=OSError("a cable is loose")):
        teller.call("POST", "/v1/tasks", NEW, key, fails=True)
    teller.example("problem-idempotency-key-in-use", "POST", "/v1/tasks", NEW, key)
    other = {**NEW, "delay_seconds": 60}
    teller.example("problem-idempotency-key-reused", "POST", "/v1/tasks", other, key)


def by_the_deployment(teller: Teller) -> None:
    teller.example("problem-list-index-off", "GET", "/v1/tasks?biz_type=orders")
    with _misconfigured(teller, SWEEP_DELAY_SECONDS="60"):
        teller.example("problem-misconfigured", "GET", "/v1/health")


def by_the_service(teller: Teller) -> None:
    task = created(teller, delay_seconds=1800, callback=HOOK)
    with patch.object(TaskStore, "get", side_effect=OSError("a cable is loose")):
        teller.example("problem-internal", "GET", path_of(task))
    damage(task, callback={"S": "nonsense"})
    teller.example("problem-unreadable", "GET", path_of(task))
    with patch.object(TaskStore, "create", side_effect=Throttled()):
        teller.example("problem-unavailable", "POST", "/v1/tasks", NEW)


@contextmanager
def _misconfigured(teller: Teller, **variables: str) -> Iterator[None]:
    with patch.dict(os.environ, variables):
        process.start_anew(teller.stack.clock, teller.stack.metrics.take_line)
        yield
    process.start_anew(teller.stack.clock, teller.stack.metrics.take_line)


STORIES = (
    Story(by_callers),
    Story(by_access, {"AuthMode": "iam", "IamDefault": "read"}),
    Story(by_api_key),
    Story(by_the_state_of_a_task),
    Story(by_the_state_of_a_business),
    Story(by_a_timer),
    Story(by_operations),
    Story(by_idempotency_key),
    Story(by_the_deployment, {"ListIndex": "off"}),
    Story(by_the_service),
)
