"""The async half of the client, against the stack."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import httpx
import pytest

from duewheel import AsyncDuewheel, NewTask, errors
from tests.support import Script, advance, made, problem, received

HOOK = "https://example.com/hook"
DAY = timedelta(days=1)  # farther than all tests together move the clock


def test_a_task_is_made_read_listed_and_cancelled(stack_url: str, biz_type: str) -> None:
    async def story() -> None:
        async with AsyncDuewheel(stack_url) as client:
            task = await client.tasks.create(biz_type, delay=DAY, payload=1, callback=HOOK)
            read = await client.tasks.get(task.task_id)
            assert replace(read, effective_callback=None) == task
            assert read.effective_callback == {**task.callback, "method": "POST"}
            batch = [NewTask(biz_type=biz_type, delay=DAY, callback=HOOK)] * 3
            results = [result async for result in client.tasks.create_many(batch)]
            assert not any(isinstance(result, errors.Problem) for result in results)
            listed = [one async for one in client.tasks.list(biz_type, page_size=2)]
            assert len(listed) == 4
            assert (await client.tasks.cancel(task.task_id)).status == "cancelled"
            with pytest.raises(errors.MalformedTaskId):
                await client.tasks.get("nothing")

    asyncio.run(story())


def test_pauses_are_awaited_with_asyncio(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    async def story() -> None:
        script = Script(
            problem("unavailable", 503, retry_after=2), httpx.ReadTimeout("lost"), made()
        )
        async with AsyncDuewheel(transport=script.transport) as client:
            assert (await client.tasks.get("AQ")).status == "pending"

    monkeypatch.setattr("duewheel._async.transport.asyncio.sleep", sleep)
    asyncio.run(story())
    assert len(waited) == 2
    assert waited[0] == 2


def test_many_tasks_are_created_concurrently(stack_url: str, biz_type: str) -> None:
    async def story() -> None:
        async with AsyncDuewheel(stack_url) as client:
            creates = [client.tasks.create(biz_type, delay=DAY, callback=HOOK) for _ in range(10)]
            tasks = await asyncio.gather(*creates)
            assert len({task.task_id for task in tasks}) == 10

    asyncio.run(story())


def test_a_watchdog_beats(stack_url: str, biz_type: str) -> None:
    async def beat() -> None:
        async with AsyncDuewheel(stack_url) as client:
            url = f"{stack_url}/_local/inbox/{biz_type}"
            watchdog = client.tasks.watchdog(biz_type, "a", timedelta(minutes=1), callback=url)
            await watchdog.beat()

    asyncio.run(beat())
    advance(stack_url, timedelta(minutes=2))
    assert len(received(stack_url, biz_type)) == 1


def test_timers_businesses_and_the_wheel_can_be_read(stack_url: str, biz_type: str) -> None:
    async def story() -> None:
        async with AsyncDuewheel(stack_url) as client:
            timer = await client.timers.create(
                biz_type, "a", cron="0 9 * * *", callback=HOOK, enabled=False
            )
            assert [one.timer_id async for one in client.timers.list(biz_type)] == [timer.timer_id]
            assert (await client.businesses.pause(biz_type)).paused
            wheel = await client.wheel()
            end = wheel.now + timedelta(minutes=1)
            assert [found async for found in client.audit(begin=wheel.now, end=end)] == []

    asyncio.run(story())
