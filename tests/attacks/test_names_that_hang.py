"""Businesses use host names whose look-ups hang: only their own calls are delayed."""

import asyncio

import pytest

from duewheel.rules.callbacks.outcome import Outcome, Verdict
from duewheel.targets.http.target import HttpTarget
from tests.targets.far_side import (
    LONG_SECONDS,
    SHORT_SECONDS,
    far_side,
    in_loop,
    post,
    target,
    until,
)
from tests.targets.name_server import name_servers, well

HOSTILE = 300  # as many as there are businesses with names that begin alike


def hanging(http: HttpTarget, seconds: float) -> list[asyncio.Task[Outcome]]:
    urls = [f"http://{number}.hangs/" for number in range(HOSTILE)]
    return [asyncio.create_task(post(http, url, seconds=seconds)) for url in urls]


@in_loop
async def test_hanging_names_delay_no_look_up_of_others_however_many_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with (
        name_servers(monkeypatch) as (server,),
        far_side() as side,
        target(calls_in_flight_max=1_000) as http,
    ):
        calls = hanging(http, LONG_SECONDS)
        await until(lambda: len(server.asked) >= HOSTILE)
        outcome = await post(http, side.url(host="well.example"), seconds=1.0)
        assert outcome.verdict is Verdict.DELIVERED
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)


@in_loop
async def test_a_look_up_ends_with_its_call(monkeypatch: pytest.MonkeyPatch) -> None:
    async with name_servers(monkeypatch), target(calls_in_flight_max=1_000) as http:
        before = asyncio.all_tasks()
        outcomes = await asyncio.gather(*hanging(http, SHORT_SECONDS))
        assert {outcome.verdict for outcome in outcomes} == {Verdict.RETRY}
        assert asyncio.all_tasks() == before
        assert not http._resolver._locks


@in_loop
async def test_a_call_that_waits_for_the_look_up_of_another_goes_on_when_that_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = iter([lambda name, query: [], well])
    async with (
        name_servers(monkeypatch, lambda name, query: next(answers)(name, query)),
        far_side() as side,
        target() as http,
    ):
        url = side.url(host="well.example")
        first = asyncio.create_task(post(http, url, seconds=SHORT_SECONDS))
        await asyncio.sleep(0)
        second = await post(http, url)
        assert ((await first).verdict, second.verdict) == (Verdict.RETRY, Verdict.DELIVERED)
