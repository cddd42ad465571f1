"""Real threads use one wheel: conditions of writes decide, behind the emulator's one lock."""

import asyncio
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest
from msgspec.structs import replace

from duewheel.rules.delivery.page_lease import LeaseHeld, PageFinished
from duewheel.rules.tasks.task import Status
from duewheel.rules.wheel.addresses import address_at
from duewheel.rules.wheel.queue_messages import PageMessage
from duewheel.stores import registry_keys
from duewheel.stores.tasks.tasks import TaskStore
from tests.support.world import LAMBDA_MS, World

THREADS = 6
T = TypeVar("T")


def results_of_all(work: Callable[[int], T]) -> list[T]:
    barrier = Barrier(THREADS)

    def start(number: int) -> T:
        barrier.wait()
        return work(number)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(start, range(THREADS)))


def test_many_notifiers_with_one_message_deliver_each_task_once(world: World) -> None:
    tasks = [world.created(in_ms=60_000) for _ in range(5)]
    world.clock.set_ms(tasks[0].due_ms)
    notifiers = [world.notifier() for _ in range(THREADS)]
    message = PageMessage(tasks[0].home.second, 0)
    deadline_ms = world.clock.now_ms() + LAMBDA_MS

    def deliver(number: int) -> LeaseHeld | PageFinished:
        return asyncio.run(notifiers[number](message, f"notifier-{number}", deadline_ms))

    results = results_of_all(deliver)

    assert any(isinstance(result, PageFinished) for result in results)
    assert sorted(world.receiver.task_ids) == sorted(task.task_id for task in tasks)


def test_only_one_of_many_schedulers_leads(world: World) -> None:
    seen = world.pointer()
    now_ms = world.clock.now_ms()
    claims = results_of_all(lambda number: world.pointers.claim(seen, str(number), now_ms))

    assert len([claim for claim in claims if claim is not None]) == 1


def test_only_one_of_many_changes_of_the_same_version_is_made(world: World) -> None:
    task = world.created()
    changed = [replace(task, version=2, last_error=str(n)) for n in range(THREADS)]
    made = results_of_all(lambda number: world.tasks.change(task, changed[number]))

    assert made.count(True) == 1
    assert world.read(task).last_error == str(made.index(True))


def test_concurrent_first_starts_agree_on_the_origin(world: World) -> None:
    world.dynamodb.delete_item(TableName=world.settings.registry_table, Key=registry_keys.SHAPE)
    now_ms = world.clock.now_ms()
    origins = results_of_all(
        lambda number: (
            world.pointers.shape(world.settings.buckets, now_ms + number * 1000, b"s").origin
        )
    )

    assert len(set(origins)) == 1


def test_many_cancels_are_one_cancel(world: World) -> None:
    task = world.created()
    answers = results_of_all(lambda _: world.cancel(task.task_id))

    assert {answer.status for answer in answers} == {Status.CANCELLED}
    assert len({answer.settled_ms for answer in answers}) == 1


def test_threads_of_a_process_announce_pages_side_by_side(world: World) -> None:
    """While one drops the seconds that have passed, others add theirs."""
    accepting = SimpleNamespace(send=lambda messages, delay_seconds: [])
    writer = replace(world.entry_writer, message_sender=accepting, announced={})
    begun_ms = world.clock.now_ms()

    def announce(number: int) -> None:
        for round_number in range(100):
            world.clock.set_ms(begun_ms + round_number * 1000)
            later = range(10 + number, 150)
            instants_ms = [world.clock.now_ms() + seconds * 1000 for seconds in later]
            writer.announce([address_at(instant_ms, bytes(8)) for instant_ms in instants_ms])

    interval_seconds = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        results_of_all(announce)
    finally:
        sys.setswitchinterval(interval_seconds)


def test_a_rescue_names_several_entries_at_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each write waits for three others, so writes one after the other would fail."""
    tasks = [world.created(in_ms=1_000) for _ in range(4)]
    world.sqs.purge_queue(QueueUrl=world.settings.slice_queue_url)
    world.clock.advance_ms(200_000)
    together = Barrier(len(tasks))
    name_entry = TaskStore.name_entry

    def name_with_others(*arguments: Any) -> bool:
        together.wait(10)
        return name_entry(*arguments)

    monkeypatch.setattr(TaskStore, "name_entry", name_with_others)
    world.sweep_second_once(tasks[0].home.second)
    world.drain()
    assert sorted(world.receiver.task_ids) == sorted(task.task_id for task in tasks)
