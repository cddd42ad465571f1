"""How long the messages of a notifier's run are hidden from other runs."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest
from msgspec.structs import replace

from duewheel.rules.delivery.page_lease import HIDDEN_MS, PageFinished, PageLease
from duewheel.rules.tasks.task import Task
from duewheel.rules.wheel.addresses import slow_page
from duewheel.rules.wheel.queue_messages import PageMessage, ReleaseMessage, decode, encode
from duewheel.stores.delivery.page_leases import PageLeaseStore
from duewheel.stores.tasks.tasks import TaskStore
from duewheel.stores.wheel.page_queue import Refused, SliceQueue
from duewheel.wiring import notifier as notifier_wiring
from duewheel.wiring import process
from duewheel.wiring.wheel import pages
from duewheel.workflows.delivery.hold import FAILED_COMES_AFTER_SECONDS
from duewheel.workflows.delivery.park_tasks import Release
from functions.notifier import app as notifier
from local.aws.emulator import Emulator
from tests.functions.conftest import Context, created, received_batch, tick
from tests.functions.test_handlers_on_moto import FAR_SECONDS, invoked_with
from tests.support.bounds import quick_first
from tests.support.clock import ManualClock
from tests.support.http_receiver import Receiver

pytestmark = pytest.mark.moto_only(reason="it asks moto's queue when its messages come")


@pytest.fixture
def comes_after_ms(emulator: Emulator, wired: ManualClock) -> Callable[[], list[float]]:
    """The time until each message of the slice queue is visible again."""
    url = process.settings().slice_queue_url
    return lambda: [ms - wired.now_ms() for ms in emulator.messages_visible_at_ms(url)]


@pytest.fixture
def batch(wired: ManualClock, receiver: Receiver) -> dict[str, Any]:
    """A batch of Lambda's poller with one page of one task; the queue hides the message for a long
    time."""
    created(receiver.url, delay_seconds=FAR_SECONDS)
    wired.advance_ms(FAR_SECONDS * 1000)
    tick()
    return received_batch()


def test_a_run_shortens_the_visibility_timeout_of_its_messages(
    batch: dict[str, Any], comes_after_ms: Callable[[], list[float]]
) -> None:
    (before_ms,) = comes_after_ms()
    assert before_ms > 60_000, "longer than the longest run"
    assert notifier.handler(batch, Context()) == {"batchItemFailures": []}
    assert comes_after_ms() == [HIDDEN_MS], (
        "in case the run has died: the poller deletes messages that are done"
    )


def test_a_message_is_hidden_in_the_queue_that_it_is_in(
    batch: dict[str, Any], comes_after_ms: Callable[[], list[float]]
) -> None:
    """A dead letter of the slow queue may have been redriven to the slice queue."""
    (record,) = batch["Records"]
    page = decode(record["body"])
    assert isinstance(page, PageMessage)
    name = process.settings().slice_queue_url.rpartition("/")[2]
    redriven = {
        **record,
        "body": encode(replace(page, page=slow_page(page.page))),
        "eventSourceARN": f"arn:aws:sqs:eu-central-1:123456789012:{name}",
    }
    assert notifier.handler({"Records": [redriven]}, Context()) == {"batchItemFailures": []}
    assert comes_after_ms() == [HIDDEN_MS]


def test_a_failed_message_becomes_visible_after_its_own_delay(
    batch: dict[str, Any],
    comes_after_ms: Callable[[], list[float]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise ConnectionError

    monkeypatch.setattr(PageLeaseStore, "take", fail)
    answer = notifier.handler(batch, Context())
    assert answer is not None
    assert len(answer["batchItemFailures"]) == 1
    assert comes_after_ms() == [FAILED_COMES_AFTER_SECONDS * 1000]


def test_a_leased_message_is_hidden_while_the_other_page_of_its_batch_is_delivered(
    batch: dict[str, Any],
    receiver: Receiver,
    wired: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    created(receiver.url, delay_seconds=30)  # the time pointer has passed its second
    wired.advance_ms(30_000)
    [held] = received_batch()["Records"]
    page = decode(held["body"])
    assert isinstance(page, PageMessage)
    lease = PageLease(page.second, page.shard)
    assert pages().take(lease, "another", wired.now_ms(), 4_000) != PageFinished()
    hidden: list[tuple[str, int]] = []
    is_hidden = Event()
    put_delivered = TaskStore.put_delivered

    def hide(_: SliceQueue, handle: str, seconds: int) -> None:
        hidden.append((handle, seconds))
        is_hidden.set()

    def wait_and_put(self: TaskStore, tasks: Sequence[Task]) -> list[Task]:
        assert is_hidden.wait(10), "while the other page is being delivered"
        return put_delivered(self, tasks)

    monkeypatch.setattr(SliceQueue, "hide", hide)
    monkeypatch.setattr(TaskStore, "put_delivered", wait_and_put)
    answer = notifier.handler({"Records": [*batch["Records"], held]}, Context())
    assert answer == {"batchItemFailures": [{"itemIdentifier": held["messageId"]}]}
    assert hidden == [(held["receiptHandle"], 5)]


def test_the_message_of_a_release_keeps_the_visibility_timeout_of_its_queue(
    wired: ManualClock, comes_after_ms: Callable[[], list[float]]
) -> None:
    process.queues()[ReleaseMessage("orders").lane].send([ReleaseMessage("orders")])
    batch = received_batch()
    before_ms = comes_after_ms()
    assert batch["Records"][0]["body"] == encode(ReleaseMessage("orders"))
    assert notifier.handler(batch, Context()) == {"batchItemFailures": []}
    assert comes_after_ms() == before_ms


@pytest.mark.parametrize(
    "in_seconds", quick_first([0, 30], pytest.mark.exhaustive), ids=["direct", "page"]
)
def test_a_page_is_delivered_though_sqs_refuses_to_hide_its_message(
    wired: ManualClock,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    in_seconds: int,
) -> None:
    def refuse(_: SliceQueue, handles: list[str], seconds: int) -> Refused:
        return Refused(again=frozenset(handles))

    monkeypatch.setattr(SliceQueue, "hide_all", refuse)
    created(receiver.url, delay_seconds=in_seconds)
    wired.advance_ms(in_seconds * 1000)
    tick()
    assert notifier.handler(received_batch(), Context()) == {"batchItemFailures": []}
    assert len(receiver.bodies) == 1


def test_an_event_that_runs_twice_concurrently_makes_each_call_once(
    batch: dict[str, Any],
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both runs have the same request id. The second begins when the first has the lease of its
    page."""
    event = invoked_with(batch["Records"][0]["body"])
    context = Context()
    taken = PageLeaseStore.take
    seconds: list[str] = []

    def take_and_look(self: PageLeaseStore, *arguments: Any) -> Any:
        lease = taken(self, *arguments)
        if not seconds:
            seconds.append("begun")
            notifier_wiring._threads.__dict__.pop("notifier", None)  # as in a new process
            with pytest.raises(notifier.MessagesLeft):
                notifier.handler(event, context)
        return lease

    monkeypatch.setattr(PageLeaseStore, "take", take_and_look)
    assert notifier.handler(event, context) is None
    assert seconds == ["begun"]
    assert len(receiver.bodies) == 1


def test_a_page_does_not_wait_for_releases_in_its_batch(
    batch: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release takes most of a minute, and a batch may have ten of them."""
    is_done = Event()
    saw: list[bool] = []
    put_delivered = TaskStore.put_delivered

    def done(*arguments: Any) -> Any:
        is_done.set()
        return put_delivered(*arguments)

    monkeypatch.setattr(TaskStore, "put_delivered", done)
    monkeypatch.setattr(Release, "__call__", lambda *_: saw.append(is_done.wait(10)))
    (page,) = batch["Records"]
    releases = [
        {**page, "messageId": f"part {part}", "body": encode(ReleaseMessage("orders", part))}
        for part in range(9)
    ]
    loop = notifier_wiring.notifier().loop
    loop.set_default_executor(ThreadPoolExecutor(3))
    answer = notifier.handler({"Records": [*releases, page]}, Context())
    assert answer == {"batchItemFailures": []}
    assert saw == [True] * 9
