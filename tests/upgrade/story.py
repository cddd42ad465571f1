"""A short life of the service, after which every kind of item and message exists, with unfinished
work."""

import asyncio
from contextlib import suppress
from functools import partial
from typing import Any

from msgspec.structs import replace

from duewheel.rules.bulk.operation import Page
from duewheel.rules.callbacks.aws.lambda_function import LambdaCallback
from duewheel.rules.callbacks.aws.sqs import SqsCallback
from duewheel.rules.callbacks.types import HttpCallback, RetryPolicy
from duewheel.rules.preconditions import Precondition
from duewheel.rules.priority import Priority
from duewheel.rules.refusals import Refusal
from duewheel.rules.tasks.idempotency import idempotent_request
from duewheel.rules.tasks.requests import batch_request
from duewheel.rules.tasks.task import Made
from duewheel.rules.tasks.updates import Change
from duewheel.rules.timers.timer import Overlap
from duewheel.rules.wheel.queue_messages import Lane, decode
from duewheel.stores.businesses.cache import KEPT_MS
from duewheel.stores.secrets import CURSOR, read_or_record
from infra.operate.admin_key import issued
from tests.support import timers
from tests.support.operations import ALL, asked_for, done
from tests.support.receiver import BUSY, GONE, OK, Outcome, Received
from tests.support.world import CALLER, World

PAGE_SIZE = 3
FAILING = "failing.example"  # the host of receivers that fail
RETRIED = RetryPolicy(attempts_max=9, delays_seconds=(600.0,))
IDEMPOTENT = '{"tasks": [{"biz_type": "asked", "delay_seconds": 900, "payload": %d, \
"callback": {"url": "https://receiver.example/asked"}}]}'


def tell(world: World) -> None:
    world.wire(page_size=PAGE_SIZE)
    world.random_unit = 0.0  # every entry is counted in the forecast, and every header read
    world.receiver.answer = answer
    _settings(world)
    _far_ahead(world)
    _ended(world)
    _retried(world)
    _timers(world)
    _swept(world)
    _parked_and_to_be_released(world)
    _begun_pages(world)
    _direct(world)
    _operations(world)


def answer(received: Received) -> Outcome:
    if FAILING in received.url:
        return BUSY
    return GONE if "gone" in received.url else OK


def _at(host: str, path: str = "paid") -> HttpCallback:
    return HttpCallback(f"https://{host}/{path}", "POST", (("x-shop", "1"),))


def _settings(world: World) -> None:
    world.configured(
        "orders",
        retry=RETRIED,
        retention_days=7,
        on_dead=_at("ops.example"),
        signing_secrets=(f"whsec_{32 * 'A'}",),
        secrets={"token": "of no consequence"},
    )
    world.configured("limited", calls_per_second=0.02, creates_per_second=50.0, creates_burst=99)
    world.configured("slow", lane=Lane.SLOW, calls_in_flight=5)
    world.configured("other", callback=_at("other.example"), priority=Priority.LOW)
    table = world.settings.registry_table
    read_or_record(world.unrecorded, table, CURSOR, b"cursors are sealed with this")
    issued(world.unrecorded, table, CALLER, world.clock)


def _far_ahead(world: World) -> None:
    """Tasks with every type of callback, with and without keys, moved either way; a crowded
    second."""
    for callback in (None, LambdaCallback("function"), SqsCallback("queue", group_id="group")):
        world.created(in_ms=86_400_000, callback=callback, biz_type="other")
    world.created_by_key(
        world.new(7_200_000, key="order-17", digest="5f", max_due_ms=1_900_000_000_000)
    )
    world.created(in_ms=6_000_123, tolerance_seconds=60)
    world.created(in_ms=6_100_000, priority=Priority.HIGH)
    world.created(in_ms=6_000_000, flow_key="customer-7", labels=(("team", "billing"),))
    earlier = world.created(in_ms=5_400_000, expires_after_seconds=60.5, payload=None)
    world.change(earlier.task_id, Change(due_ms=earlier.due_ms - 1_800_000))
    later = world.created(in_ms=1_200_000)
    world.change(later.task_id, Change(due_ms=later.due_ms + 1_800_000))
    second = world.clock.now_ms() // 1000 + 1_500
    assert world.headers.raise_to(second, 4)
    world.created_many(world.new(1_500_000, biz_type="crowd") for _ in range(12))
    for number in range(2):
        requested(world, number)


def requested(world: World, number: int) -> list[Made | Refusal]:
    body = IDEMPOTENT % number
    request = idempotent_request("me", f"k{number}", "/v1/tasks/batch", body, is_single=False)
    return world.create_idempotent(request, partial(batch_request, body))


def _ended(world: World) -> None:
    """Tasks that are delivered, dead with a notice, cancelled, expired, and redriven."""
    world.created_by_key(world.new(30_000, key="order-1"))
    world.cancel(world.created(in_ms=40_000).task_id)
    world.created(in_ms=20_000, expires_after_seconds=1.0)
    dead = [world.created(in_ms=30_000, callback=_at("gone")) for _ in range(2)]
    world.clock.advance_ms(22_000)
    _minute(world)
    world.receiver.answer = lambda received: BUSY
    world.redrive(dead[0].task_id)
    world.drain()
    world.receiver.answer = answer


def _retried(world: World) -> None:
    """Entries elsewhere, an open breaker, and calls that wait in line for their turns."""
    failing: dict[str, Any] = {"callback": _at(FAILING), "retry": RETRIED, "biz_type": "failing"}
    world.created_many(world.new(30_000, **failing) for _ in range(25))
    world.created(in_ms=30_000, callback=_at(FAILING), biz_type="orders")
    world.dispatch_until(world.clock.now_ms() // 1000 + 30)
    world.drain()


def _timers(world: World) -> None:
    """The runs of the first are in the index, step records name those of the second."""
    timers.made(world, 120, overlap=Overlap.SKIP)
    world.drain()
    world.wire(run_index=False)
    timers.patched(world, timers.made(world, 900, retry=RETRIED), payload='{"n":2}')
    timers.made(world, 60, enabled=False)
    world.clock.advance_ms(1_000)
    world.drain()
    _minute(world)


def _swept(world: World) -> None:
    """Unbegun pages are sent again; all else is counted."""
    lost = world.created(in_ms=30_000)
    world.dispatch_until(lost.home.second)
    world.sqs.purge_queue(QueueUrl=world.queue.url)
    for _ in range(4):
        world.dispatch_until(world.clock.now_ms() // 1000 + 60)
        world.drain()
        world.sweep_once()


def _parked_and_to_be_released(world: World) -> None:
    for biz_type in ("paused", "resumed"):
        world.configured(biz_type, timeout_seconds=5.0)
        _pause(world, biz_type, paused=True)
    for biz_type in ("paused", "resumed"):
        world.created(in_ms=30_000, biz_type=biz_type)
    world.dispatch_until(world.clock.now_ms() // 1000 + 30)
    world.drain()
    _pause(world, "resumed", paused=False)


def _pause(world: World, biz_type: str, *, paused: bool) -> None:
    world.configure_business.pause(biz_type, Precondition(), paused=paused, by=CALLER)
    world.clock.advance_ms(KEPT_MS + 1_000)


def _begun_pages(world: World) -> None:
    """One slice with a page that is called and not settled, a page whose notifier died, and a page
    that is not begun. Other slices with tasks that were passed to the slow lane or wait for
    turns."""
    in_ms = 30_500 - world.clock.now_ms() % 1000
    news = [world.new(in_ms + n, biz_type="begun") for n in range(2 * PAGE_SIZE + 1)]
    world.created_many(news)
    world.created(in_ms=in_ms + 1_000, biz_type="slow")
    world.created_many(world.new(in_ms + 2_000, biz_type="limited") for _ in range(3))
    world.dispatch_until(world.clock.now_ms() // 1000 + 33)
    pages = [m for m in world.receive() if '"page"' in m["Body"]]
    (first,) = [m for m in pages if decode(m["Body"]).second == news[0].due_ms // 1000]
    others = [m for m in pages if m is not first]
    _left_unsettled(world, first)
    for message in others:
        world.handle(message)
    (second,) = [m for m in world.receive() if '"after"' in m["Body"]]
    _given_up(world, second)


class _Died(BaseException):
    """The process has ended."""


def _given_up(world: World, message: dict[str, Any]) -> None:
    def die(_: Received) -> Outcome:
        raise _Died

    world.receiver.answer = die
    with suppress(_Died):
        world.handle(message)
    world.receiver.answer = answer
    world.loop = asyncio.new_event_loop()
    world.deliver = world.notifier()


def _left_unsettled(world: World, message: dict[str, Any]) -> None:
    original = world.dynamodb.batch_write_item
    world.dynamodb.batch_write_item = lambda RequestItems: {"UnprocessedItems": RequestItems}
    try:
        world.handle(message, lambda_ms=30_000)
    finally:
        world.dynamodb.batch_write_item = original


def _direct(world: World) -> None:
    world.created(in_ms=4_000, biz_type="begun")
    world.created(in_ms=1_500, biz_type="slow")


def _minute(world: World) -> None:
    world.dispatch_until(world.clock.now_ms() // 1000 + 60)
    world.drain()
    world.sweep_once()
    world.drain()


def _operations(world: World) -> None:
    """One that is done, with a refused task, and one whose page is under way."""
    tasks = [world.created(in_ms=7_000_000 + n * 1_000, biz_type="moved") for n in range(3)]
    absent = world.placed(world.new(7_000_000, biz_type="moved"))
    ids = [task.task_id for task in (*tasks, absent)]
    done(world, "reschedule", biz_type="moved", ids=ids, shift_seconds=60)
    begun = asked_for(world, "cancel", biz_type="moved", filter=ALL)
    claimed = world.operations.claim(begun, "a worker")
    assert claimed is not None
    page = Page((tasks[0].home.name,), 1, None)
    assert world.operations.write(claimed, replace(claimed, page=page)) is not None
