"""The modules of the core that a warm create and the delivery of a page pass.

A module is passed when one of its functions is entered. The real handlers run with the real wiring
on moto. Each runs twice, one second apart. The second run counts, when all is imported, wired and
cached.

    make bench-modules
"""

import json
import random
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from itertools import repeat
from pathlib import Path
from types import FrameType

from bench.cpu_per_task import AHEAD_SECONDS, CASE, calls_at, context, deliver, emulated
from bench.one_machine.sink import receiving
from duewheel.rules.wheel.queue_messages import PageMessage, encode
from functions.api import app as api
from tests.support.clock import ManualClock

GOALS = {"POST /v1/tasks": 30, "the delivery of a page": 40}

_entered: dict[str, set[str]] = {}  # functions by module


def main() -> None:
    for name, modules in passed().items():
        print(f"{name} passes {len(modules)} modules (goal: at most {GOALS[name]})")
        for module in sorted(modules):
            print(f"  {module.removeprefix('duewheel.')}: {', '.join(sorted(modules[module]))}")


def passed() -> dict[str, dict[str, set[str]]]:
    """By operation: the modules of the core that it passes, with the functions entered."""
    random.seed(0)  # without work that is sampled, such as the load estimate
    threading.settrace(_trace)  # of threads to come: all run under it from their start
    try:
        with (
            tempfile.TemporaryDirectory() as folder,
            receiving(Path(folder)) as receiver,
            emulated() as (_, clock),
        ):
            return dict(zip(GOALS, _warm_runs(clock, receiver), strict=True))
    finally:
        threading.settrace(None)  # type: ignore[arg-type]


def _warm_runs(clock: ManualClock, receiver: str) -> Iterator[dict[str, set[str]]]:
    begin = clock.now_ms() // 1000 + AHEAD_SECONDS
    seconds = (begin, begin + 1)
    for second in seconds:
        with _traced():
            answer = api.handler(_request(second, f"{receiver}/{CASE}/1"), context("api"))
        if answer["statusCode"] != 201:
            raise AssertionError(f"the task was not created: {answer}")
        clock.advance_ms(1000)
    yield dict(_entered)
    for second in seconds:
        clock.set_ms(second * 1000)
        with _traced():
            deliver(encode(PageMessage(second, 0)), repeat(nullcontext))
    if calls_at(receiver) != len(seconds):
        raise AssertionError("not all tasks were called, or not once")
    yield dict(_entered)


def _request(second: int, url: str) -> dict[str, object]:
    task = {
        "biz_type": "bench",
        "due_ms": second * 1000,
        "payload": {"order": 17},
        "callback": {"url": url},
    }
    return {
        "rawPath": "/v1/tasks",
        "rawQueryString": "",
        "headers": {},
        "requestContext": {"http": {"method": "POST"}, "requestId": "r"},
        "body": json.dumps(task),
    }


@contextmanager
def _traced() -> Iterator[None]:
    _entered.clear()
    sys.settrace(_trace)
    try:
        yield
    finally:
        sys.settrace(None)


def _trace(frame: FrameType, event: str, argument: object) -> None:
    name = frame.f_globals.get("__name__", "")
    if name.startswith("duewheel."):
        _entered.setdefault(name, set()).add(frame.f_code.co_qualname)


if __name__ == "__main__":
    main()
