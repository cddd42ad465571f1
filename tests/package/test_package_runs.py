"""Every built function answers its real events in the real runtime, with its layers alone.

The tests run in order: later ones use the items that earlier ones left in the tables.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest

from duewheel.clock import SystemClock
from infra.operate import admin_key
from local.aws.policies import roles_of
from local.aws.resources import Resources
from tests.package import events
from tests.package.aws_server import AwsServer
from tests.package.built_package import TARGET_QUEUE_ARN, TARGET_QUEUE_URL
from tests.package.conftest import Boot, said
from tests.package.event_source import EventSource
from tests.support.http_receiver import Receiver
from tests.support.stack_requests import HOST, StackOfATeam

FAR_SECONDS = 20  # farther ahead than a near entry, and than a cold start takes
ALL_FUNCTIONS = (
    "ApiFunction",
    "SchedulerFunction",
    "NotifierFunction",
    "SweeperFunction",
    "AuthorizerFunction",
    "IngestFunction",
    "BulkFunction",
    "StackTimersFunction",
)
# Of the form that is allowed.
NOBODYS_HOST = "cloudformation-custom-resource-response-nosuch1.s3.no-such-region-1.amazonaws.com"


def call(
    boot: Boot, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
) -> tuple[int, Any]:
    answer = boot("ApiFunction").invoke(events.http_api(method, path, body, headers))
    return answer["statusCode"], json.loads(answer["body"])


def create(boot: Boot, receiver: Receiver, delay_seconds: int, payload: Any, **more: Any) -> str:
    body = {
        "biz_type": "orders",
        "delay_seconds": delay_seconds,
        "payload": payload,
        "callback": {"url": receiver.url},
        **more,
    }
    status, task = call(boot, "POST", "/v1/tasks", body)
    assert status == 201, task
    assert task["status"] == "pending"
    task_id: str = task["task_id"]
    return task_id


def test_api_answers_the_health_check(boot: Boot) -> None:
    status, health = call(boot, "GET", "/v1/health")

    assert (status, health["status"]) == (200, "ok")


def test_api_has_its_document_in_the_layer(boot: Boot) -> None:
    status, document = call(boot, "GET", "/v1/openapi.json")

    assert (status, document["info"]["title"]) == (200, "Duewheel")


def test_api_refuses_bad_input_with_a_problem_document(boot: Boot) -> None:
    status, problem = call(boot, "POST", "/v1/tasks", {"biz_type": "orders"})

    assert 400 <= status < 500
    assert problem["type"]


def test_api_accepts_the_unchanged_sample_event(boot: Boot) -> None:
    answer = boot("ApiFunction").invoke(events.sample("http-api-create-task"))

    assert answer["statusCode"] == 201


def test_a_near_task_goes_from_the_api_to_the_notifier_and_is_called_back(
    boot: Boot, slice_queue: EventSource, receiver: Receiver
) -> None:
    task_id = create(boot, receiver, delay_seconds=1, payload={"near": 1.0})

    messages = slice_queue.receive(wait_seconds=5)
    answer = slice_queue.deliver(messages, boot("NotifierFunction").invoke)

    assert answer == {"batchItemFailures": []}
    assert receiver.bodies == ['{"near": 1.0}']
    assert call(boot, "GET", f"/v1/tasks/{task_id}")[1]["status"] == "delivered"


def test_a_task_further_ahead_is_delivered_with_its_page(
    boot: Boot, slice_queue: EventSource, receiver: Receiver
) -> None:
    """Its writer and the scheduler send the same message, which the queue delays."""
    receiver.bodies.clear()
    task_id = create(boot, receiver, FAR_SECONDS, payload="far")
    boot("SchedulerFunction").invoke(events.sample("scheduled"))
    assert slice_queue.receive() == []

    messages: list[Any] = []
    while len(messages) < 2:
        messages += slice_queue.receive(wait_seconds=FAR_SECONDS)
    assert messages[0]["Body"] == messages[1]["Body"]
    answer = slice_queue.deliver(messages, boot("NotifierFunction").invoke)

    assert answer == {"batchItemFailures": []}
    assert receiver.bodies == ['"far"']
    assert call(boot, "GET", f"/v1/tasks/{task_id}")[1]["status"] == "delivered"


def test_a_task_with_a_refused_call_is_retried_and_can_be_cancelled(
    boot: Boot, slice_queue: EventSource, receiver: Receiver
) -> None:
    retry = {"delays_seconds": [3600]}
    task_id = create(boot, receiver, delay_seconds=0, payload=None, retry=retry)
    receiver.status = 503

    answer = slice_queue.deliver(
        slice_queue.receive(wait_seconds=5), boot("NotifierFunction").invoke
    )
    receiver.status = 204

    assert answer == {"batchItemFailures": []}
    task = call(boot, "GET", f"/v1/tasks/{task_id}")[1]
    assert (task["status"], task["attempts"]) == ("pending", 1)
    assert call(boot, "DELETE", f"/v1/tasks/{task_id}")[1]["status"] == "cancelled"


def test_api_changes_and_lists_keyed_tasks(boot: Boot) -> None:
    body = {"delay_seconds": 3600, "callback": {"url": "https://example.com/"}}
    of_business = "/v1/businesses/shop/tasks"
    made = [call(boot, "PUT", f"{of_business}/order-17:{name}", body) for name in ("a", "b", "a")]
    assert [status for status, _ in made] == [201, 201, 200]
    task_id = made[0][1]["task_id"]

    assert call(boot, "PATCH", f"/v1/tasks/{task_id}", {"delay_seconds": 1800})[0] == 200
    assert len(call(boot, "GET", "/v1/tasks?biz_type=shop")[1]["tasks"]) == 2
    assert len(call(boot, "GET", f"{of_business}?key_prefix=order-17:")[1]["tasks"]) == 2
    assert call(boot, "DELETE", f"{of_business}/order-17:b")[1]["status"] == "cancelled"
    assert call(boot, "PUT", f"{of_business}/order-17:b", body)[0] == 201
    cancelled = call(boot, "DELETE", f"{of_business}?key_prefix=order-17:")[1]
    assert cancelled == {"cancelled": 2, "too_late": [], "cursor": None}


def test_a_dead_task_is_redriven(boot: Boot, slice_queue: EventSource, receiver: Receiver) -> None:
    task_id = create(boot, receiver, delay_seconds=0, payload=None, key="order-18")
    receiver.status = 410
    slice_queue.deliver(slice_queue.receive(wait_seconds=5), boot("NotifierFunction").invoke)
    receiver.status = 204
    assert call(boot, "GET", f"/v1/tasks/{task_id}")[1]["status"] == "dead"

    assert call(boot, "POST", f"/v1/tasks/{task_id}/redrive")[0] == 200
    slice_queue.deliver(slice_queue.receive(wait_seconds=5), boot("NotifierFunction").invoke)
    assert call(boot, "GET", f"/v1/tasks/{task_id}")[1]["status"] == "delivered"


def test_api_creates_a_batch(boot: Boot) -> None:
    tasks = [
        {"biz_type": "orders", "delay_seconds": 3600, "callback": {"url": "https://example.com/"}}
        for _ in range(30)
    ]

    status, answer = call(boot, "POST", "/v1/tasks/batch", {"tasks": tasks})

    assert (status, [result["status"] for result in answer["results"]]) == (200, [201] * 30)


def test_api_creates_once_under_an_idempotency_key(boot: Boot) -> None:
    def create_idempotent(order: int) -> tuple[int, Any]:
        task = {"biz_type": "once", "delay_seconds": 3600, "payload": order}
        task["callback"] = {"url": "https://example.com/"}
        body = {"tasks": [{**task, "key": f"order-{order}"}, *[task] * 29]}
        return call(boot, "POST", "/v1/tasks/batch", body, {"Idempotency-Key": "once-1"})

    first = create_idempotent(17)
    assert [result["status"] for result in first[1]["results"]] == [201] * 30
    assert create_idempotent(17) == first
    assert create_idempotent(18)[1]["type"].endswith(":idempotency-key-reused")
    assert len(call(boot, "GET", "/v1/tasks?biz_type=once&limit=100")[1]["tasks"]) == 30


def test_the_notifier_is_invoked_while_the_queue_refuses_messages(
    boot: Boot, aws_server: AwsServer, slice_queue: EventSource, receiver: Receiver
) -> None:
    receiver.bodies.clear()
    aws_server.queue_refuses = True
    task_id = create(boot, receiver, delay_seconds=0, payload="near")
    while aws_server.invocations:
        assert boot("NotifierFunction").invoke(aws_server.invocations.pop(0)) is None
    aws_server.queue_refuses = False

    assert receiver.bodies == ['"near"']
    assert slice_queue.receive() == []
    assert call(boot, "GET", f"/v1/tasks/{task_id}")[1]["status"] == "delivered"


def test_one_notifier_sends_a_hundred_messages_to_a_queue_concurrently(
    boot: Boot, slice_queue: EventSource, aws: Callable[[str], Any]
) -> None:
    """The notifier uses a thread for each. Their memory is part of the memory that the last test
    checks."""
    queue = aws("sqs").create_queue(QueueName="target")["QueueUrl"]
    callback = {"type": "sqs", "queue_url": TARGET_QUEUE_URL}
    task = {"biz_type": "orders", "delay_seconds": 1, "payload": 1, "callback": callback}
    assert call(boot, "POST", "/v1/tasks/batch", {"tasks": [task] * 100})[0] == 200

    while messages := slice_queue.receive(wait_seconds=2):
        slice_queue.deliver(messages, boot("NotifierFunction").invoke)

    attributes = ["ApproximateNumberOfMessages"]
    answer = aws("sqs").get_queue_attributes(QueueUrl=queue, AttributeNames=attributes)
    assert answer["Attributes"] == {"ApproximateNumberOfMessages": "100"}


def test_api_audits_the_items_of_the_wheel(boot: Boot) -> None:
    wheel = call(boot, "GET", "/v1/wheel")[1]
    status, audited = call(boot, "GET", f"/v1/audit?from={wheel['origin']}&to={wheel['now']}")
    assert (status, audited["findings"], audited["cursor"]) == (200, [], None)
    assert audited["checked"]["items"] > 0


def test_the_notifier_reports_a_message_that_it_cannot_read(boot: Boot) -> None:
    event = events.sample("slice-queue-batch")
    event["Records"] = event["Records"][:1]
    event["Records"][0]["body"] = "no message of this service"

    answer = boot("NotifierFunction").invoke(event)

    message_id = event["Records"][0]["messageId"]
    assert answer == {"batchItemFailures": [{"itemIdentifier": message_id}]}


def test_the_sweeper_runs_to_its_end(boot: Boot) -> None:
    assert boot("SweeperFunction").invoke(events.sample("scheduled")) is None


def test_the_authorizer_admits_only_a_valid_key(
    boot: Boot, aws: Callable[[str], Any], resources: Resources
) -> None:
    table = resources.table_name("Registry")
    made = admin_key.issued(aws("dynamodb"), table, "somebody", SystemClock())

    def admission_of(text: str) -> Any:
        event = {**events.sample("authorizer-request"), "identitySource": [f"Bearer {text}"]}
        return boot("AuthorizerFunction").invoke(event)

    context = {"key_id": made.key.key_id, "grants": "admin:*", "expires_ms": "", "version": "1"}
    assert admission_of(made.text) == {"isAuthorized": True, "context": context}
    assert admission_of(made.text[:-1]) == {"isAuthorized": False}


def test_ingest_creates_tasks_and_rejects_messages_that_it_cannot_read(
    boot: Boot, resources: Resources, aws: Callable[[str], Any]
) -> None:
    event = events.sample("ingest-queue-batch")
    event["Records"].append({**event["Records"][0], "messageId": "m-3", "body": "no JSON"})
    now_ms = str(SystemClock().now_ms())
    for record in event["Records"]:
        times = {"SentTimestamp": now_ms, "ApproximateFirstReceiveTimestamp": now_ms}
        record["attributes"] |= times
        record["body"] = record["body"].replace('"orders"', '"ingested"')

    for _ in range(2):
        assert boot("IngestFunction").invoke(event) == {"batchItemFailures": []}

    tasks = call(boot, "GET", "/v1/tasks?biz_type=ingested")[1]["tasks"]
    assert sorted(task["payload"]["order"] for task in tasks) == [17, 17, 18]
    attributes = aws("sqs").get_queue_attributes(
        QueueUrl=resources.queue_url("IngestDeadLetterQueue"),
        AttributeNames=["ApproximateNumberOfMessages"],
    )["Attributes"]
    assert attributes == {"ApproximateNumberOfMessages": "2"}


def test_bulk_carries_out_an_operation(
    boot: Boot, receiver: Receiver, aws_server: AwsServer
) -> None:
    task_id = create(boot, receiver, 3600, {"order": 19})
    body = {"biz_type": "orders", "action": "cancel", "ids": [task_id]}
    status, operation = call(boot, "POST", "/v1/operations", body)
    assert (status, operation["state"]) == (201, "running")

    assert boot("BulkFunction").invoke(aws_server.invocations[-1]) is None

    shown = call(boot, "GET", f"/v1/operations/{operation['operation_id']}")[1]
    assert (shown["state"], shown["changed"]) == ("done", 1)
    assert call(boot, "GET", f"/v1/tasks/{task_id}")[1]["status"] == "cancelled"


def test_a_stack_makes_a_timer_and_the_run_fails_if_its_answer_is_not_taken(
    boot: Boot, receiver: Receiver
) -> None:
    timer = {"biz_type": "orders", "name": "close", "cron": "0 3 * * *"}
    properties = {**timer, "callback": {"url": receiver.url}}
    event = StackOfATeam(send=lambda _: None).event("Create", "Close", properties)
    event["ResponseURL"] = event["ResponseURL"].replace(HOST, NOBODYS_HOST)

    with pytest.raises(AssertionError, match="answer to a stack was not taken"):
        boot("StackTimersFunction").invoke(event)

    found = call(boot, "GET", "/v1/timers?biz_type=orders&name_prefix=close")[1]["timers"]
    assert [one["cron"] for one in found] == ["0 3 * * *"]


@pytest.mark.parametrize("name", ALL_FUNCTIONS)
def test_the_policy_of_a_function_allows_all_its_calls(
    aws_server: AwsServer, resources: Resources, name: str
) -> None:
    notifier = resources.ref("NotifierFunctionAliaslive")  # an ARN
    bulk = resources.ref("BulkFunctionAliaslive")
    arns = {
        **{resources.table_name(t): resources.attribute(t, "Arn") for t in ("Wheel", "Registry")},
        **{
            resources.queue_url(q): resources.attribute(q, "Arn")
            for q in ("SliceQueue", "IngestMessageQueue", "IngestDeadLetterQueue")
        },
        f"{resources.ref('NotifierFunction')}:live": notifier,
        f"{resources.ref('BulkFunction')}:live": bulk,
        "NotifierFunction:live": notifier,  # as the notifier invokes itself here
        TARGET_QUEUE_URL: TARGET_QUEUE_ARN,
    }
    done = {
        (noted.action, arns[noted.resource] + noted.index)
        for noted in aws_server.calls
        if noted.access_key == name
    }
    role = roles_of(resources)[resources.template.code_folders[name].name]

    assert done
    assert done <= {(right.action, right.resource) for right in role.rights()}


@pytest.mark.parametrize("name", ALL_FUNCTIONS)
def test_a_function_fits_into_its_memory(boot: Boot, name: str) -> None:
    environment = boot(name)
    if name == "SweeperFunction":
        environment.invoke(events.sample("scheduled"))

    peak_mb = environment.memory_peak_mb()

    said.append(f"{name} held {peak_mb:.0f} of {environment.function.memory_mb} MB")
    assert peak_mb < environment.function.memory_mb
