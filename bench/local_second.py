"""How fast the local stack is: tasks due in one and the same second, created and delivered.

Real time on this machine, in one process with moto: it says nothing about a deployed stack.

    make bench-local
"""

import argparse
import json
import time
from datetime import datetime
from typing import Any
from urllib.request import Request, urlopen

from duewheel.log import logger
from duewheel.rules.instants import rfc3339
from local.stack import LocalStack

BATCH = 500
AHEAD_SECONDS = 15
GIVE_UP_SECONDS = 300


def call(url: str, body: object = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(url, data=data)) as answer:
        return json.load(answer)


def create(stack: LocalStack, number: int, due_ms: int) -> None:
    for start in range(0, number, BATCH):
        tasks = [
            {
                "biz_type": "bench",
                "due_at": rfc3339(due_ms),
                "payload": {"number": n},
                "callback": {"url": f"{stack.url}/_local/inbox/bench"},
            }
            for n in range(start, min(start + BATCH, number))
        ]
        results = call(f"{stack.url}/v1/tasks/batch", {"tasks": tasks})["results"]
        if refused := [r for r in results if r["status"] != 201]:
            raise SystemExit(f"{len(refused)} were not created: {refused[0]}")


def await_callbacks(stack: LocalStack, number: int) -> datetime:
    """When the last one came, by the stack's clock."""
    give_up = time.monotonic() + GIVE_UP_SECONDS
    while time.monotonic() < give_up:
        time.sleep(0.5)
        received = call(f"{stack.url}/_local/received/bench")["requests"]
        if len({request["headers"]["webhook-id"] for request in received}) == number:
            return datetime.fromisoformat(received[-1]["received_at"])
    raise SystemExit("not all callbacks came")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="?", type=int, default=1_000)
    number = parser.parse_args().tasks
    logger.setLevel("WARNING")
    with LocalStack() as stack:
        due_ms = (stack.clock.now_ms() // 1000 + AHEAD_SECONDS) * 1000
        begun = time.monotonic()
        create(stack, number, due_ms)
        print(f"{number} tasks created in {time.monotonic() - begun:.1f} s")
        last_seconds = await_callbacks(stack, number).timestamp() - due_ms / 1000
        print(f"all of them called back {last_seconds:.1f} s after their second began")


if __name__ == "__main__":
    main()
