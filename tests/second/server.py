"""Serves ministack to the tests, on a free port and on the tests' clock.

It runs in the environment that `make second-opinion` makes, never in that of the tests. Invariant:
ministack's code decides everything about tables and queues; only the time comes from a header of
each request. Its items never expire, because the thread that deletes them sees the time of 1970.
"""

import asyncio
import json
import os
import socket
import sys
import time
from threading import current_thread
from typing import Any

ACCOUNT_ID, REGION = "123456789012", "us-east-1"
os.environ.update(
    MINISTACK_ACCOUNT_ID=ACCOUNT_ID, MINISTACK_REGION=REGION, LOG_LEVEL="ERROR", AWS_PROFILE=""
)

from hypercorn.asyncio import serve  # noqa: E402 - ministack reads the environment at import
from hypercorn.config import Config  # noqa: E402
from ministack.app import app  # noqa: E402
from ministack.services import dynamodb, sqs  # noqa: E402

CLOCK_HEADER = b"x-test-clock-ms"


class Clock:
    """Replaces the module `time` in ministack's DynamoDB and SQS."""

    now_ms = 0

    def time(self) -> float:
        is_reaper = current_thread().name == "dynamodb-ttl-reaper"
        return 0.0 if is_reaper else self.now_ms / 1000

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)


clock = Clock()
dynamodb.time = sqs.time = clock


async def on_the_clock(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] != "http":
        await app(scope, receive, send)
        return
    clock.now_ms = int(dict(scope["headers"]).get(CLOCK_HEADER, b"0"))
    match scope["path"]:
        case "/_test/reset":
            dynamodb.reset()
            sqs.reset()
            await _answer(send, None)
        case "/_test/empty":
            _empty()
            await _answer(send, None)
        case "/_test/visible_at_ms":
            await _answer(send, _visible_at_ms(scope["query_string"].decode()))
        case _:
            await app(scope, receive, send)


def _empty() -> None:
    """Delete all items and messages, but no tables and queues."""
    for table in dynamodb._tables._data.values():
        table["items"].clear()
    for queue in sqs._queues._data.values():
        queue["messages"].clear()


def _visible_at_ms(queue_name: str) -> list[float]:
    return [
        message["visible_at"] * 1000
        for (_, _, url), queue in sqs._queues._data.items()
        if url.endswith(f"/{queue_name}")
        for message in queue["messages"]
    ]


async def _answer(send: Any, content: Any) -> None:
    body = json.dumps(content).encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def main() -> None:
    listening = socket.create_server(("127.0.0.1", 0))  # first, so that early connections wait
    config = Config()
    config.bind = [f"fd://{listening.fileno()}"]
    config.keep_alive_timeout = 3_600
    config.keep_alive_max_requests = sys.maxsize
    config.errorlog = config.accesslog = None

    async def run() -> None:
        ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(sys.stdin, ended.set)  # ends with its parent process
        await serve(on_the_clock, config, shutdown_trigger=ended.wait)

    sys.stdout.write(f"{listening.getsockname()[1]}\n")
    sys.stdout.flush()
    asyncio.run(run())


if __name__ == "__main__":
    main()
