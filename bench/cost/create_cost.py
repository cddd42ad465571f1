"""The cost of requests for tasks, without the tasks themselves: by a call of the HTTP API, or by a
message of the ingest queue.

Units are counted on moto, as those of a request minus those of the same tasks created without one.
"""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass

from bench.cost.bill import MONTH_SECONDS, CostModel, pollers_of, price
from bench.cost.counted import PAYLOAD, TASKS_PER_BATCH, TEMPLATE, Ledger, Units, new_world
from bench.cost.log_cost import change_bytes
from duewheel.rules.access.grants import Access, Grant, Permit, Right
from duewheel.rules.ingest.message import KEY_ATTRIBUTE, IngestMessage
from duewheel.rules.tasks.idempotency import idempotent_request
from duewheel.rules.tasks.requests import batch_request, single_request
from duewheel.stores.ingest.queue import IngestQueue
from duewheel.workflows.ingest.ingest import Ingest
from local.aws.intrinsics import NoReferences
from local.aws.template import load_template
from tests.support.world import World

MESSAGES_OF_A_RUN = 10  # as many as wait, up to these
SQS_REQUEST_BYTES = 65_536
SIZES = (1, TASKS_PER_BATCH)


@dataclass(frozen=True)
class Way:
    """One request. `runs` of its function, each message of which takes so long."""

    name: str
    tasks: int
    more: Units
    runs: float
    busy_ms: float
    sqs_requests: float = 0
    http_requests: float = 0
    log_bytes: float = 0


@dataclass(frozen=True)
class IdleQueue:
    """The additional cost of a month with the queue, without messages."""

    polls: float
    alarms: int

    @property
    def dollars(self) -> float:
        return self.polls / 1e6 * price("sqs_requests_million") + self.alarms * price("alarm_month")


def ways(model: CostModel, tasks: int) -> list[Way]:
    busy_ms, logged = model.api_ms(tasks), change_bytes(tasks)
    of_a_call = {"http_requests": 1, "log_bytes": model.assumed.access_log_bytes + logged}
    by_message = counted(_by_message, tasks)
    return [
        Way("a call", tasks, Units(), 1, busy_ms, **of_a_call),
        Way(
            "a call with `Idempotency-Key`", tasks, counted(_by_key, tasks), 1, busy_ms, **of_a_call
        ),
        *(
            Way(
                f"a message, {together} a run",
                tasks,
                by_message,
                1 / together,
                busy_ms,
                sqs_requests=sqs_requests(len(body_of(tasks)), together),
                log_bytes=logged,  # with other names, about as long
            )
            for together in (MESSAGES_OF_A_RUN, 1)
        ),
    ]


def per_million(model: CostModel, way: Way) -> float:
    """US dollars per million requests, without the tasks, whose cost does not depend on the
    request."""
    memory_gb = model.memory_gb["api"]  # the ingest function has the same
    return (
        way.more.write * price("dynamodb_write_units_million")
        + way.more.read * price("dynamodb_read_units_million")
        + way.sqs_requests * price("sqs_requests_million")
        + way.http_requests * price("http_api_requests_million")
        + way.runs * price("lambda_requests_million")
        + way.busy_ms / 1_000 * memory_gb * price("lambda_arm_gb_seconds_million")
        + way.log_bytes / 1_000 * price("logs_gb")
    )


def sqs_requests(message_bytes: int, together: int) -> float:
    """Of one message: sent singly, received and deleted together, billed by the 64 KB begun."""
    sent = math.ceil(message_bytes / SQS_REQUEST_BYTES)
    received = math.ceil(together * message_bytes / SQS_REQUEST_BYTES) / together
    return sent + received + 1 / together


def idle_queue(model: CostModel) -> IdleQueue:
    template = load_template(TEMPLATE, {"IngestBusinesses": "*"})
    alarms = len(template.of_type("AWS::CloudWatch::Alarm")) - model.alarms
    pollers = sum(
        pollers_of({"ScalingConfig": template.resolve(scaling, NoReferences())})
        for scaling in (
            one.properties["ScalingConfig"]
            for one in template.of_type("AWS::Lambda::EventSourceMapping")
        )
    )
    pollers -= model.pollers
    return IdleQueue(pollers / model.assumed.poll_seconds * MONTH_SECONDS, alarms)


def counted(ask: Callable[[World, str, int], None], tasks: int) -> Units:
    """The units beyond those of the same tasks created without a request."""
    body = body_of(tasks)
    return _units(ask, body, tasks).plus(_units(_without, body, tasks), -1)


def body_of(tasks: int) -> str:
    one = {
        "biz_type": "orders",
        "delay_seconds": 60,
        "payload": json.loads(PAYLOAD),
        "callback": {"url": "https://receiver.example/"},
    }
    return json.dumps(one if tasks == 1 else {"tasks": [one] * tasks})


def _units(ask: Callable[[World, str, int], None], body: str, tasks: int) -> Units:
    with new_world() as (world, _):
        world.business_cache.many(["orders"])  # read every few seconds, for any number of requests
        ledger = Ledger(world)
        with ledger.open():
            ask(world, body, tasks)
        return ledger.both


def _without(world: World, body: str, tasks: int) -> None:
    now_ms = world.clock.now_ms()
    world.create([single_request(body, now_ms)] if tasks == 1 else batch_request(body, now_ms))


def _by_key(world: World, body: str, tasks: int) -> None:
    query = idempotent_request("me", "order-17", "/v1/tasks", body, is_single=tasks == 1)
    world.create_idempotent(
        query,
        lambda ms: [single_request(body, ms)] if tasks == 1 else batch_request(body, ms),
    )


def _by_message(world: World, body: str, tasks: int) -> None:
    now_ms = world.clock.now_ms()
    attributes = {KEY_ATTRIBUTE: "order-17"}
    message = IngestMessage(
        message_id="id",
        receipt_handle="handle",
        body=body,
        sender="sender",
        sent_ms=now_ms,
        first_received_ms=now_ms,
        receives=1,
        attributes=attributes,
    )
    permit = Permit(Access("ingest", (Grant(Right.WRITE, "*"),)), Right.WRITE)
    ingest = Ingest(
        clock=world.clock,
        create_idempotent=world.create_idempotent,
        queue=IngestQueue(world.sqs, "nowhere", "nowhere"),  # without refusals it needs neither
        permit=permit,
        allowed=world.settings.allowed_targets,
        random_unit=lambda: 0.0,
    )
    ingested = ingest(message, "run")
    if ingested.is_left or ingested.problem or len(ingested.task_ids) != tasks:
        raise AssertionError(f"the message came to {ingested}")
