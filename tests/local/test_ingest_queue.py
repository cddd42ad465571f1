"""Messages of the ingest queue on the local stack, from the local route to the callback."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from local.chaos.faults import Faults
from local.stack import LocalStack
from tests.support.service import Service


class Sender(Service):
    def send(self, body: Any, **headers: str) -> tuple[int, Any]:
        """Send a message; underscores in header names become hyphens."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(f"{self.url}/_local/ingest", data, named, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                return reply.status, json.loads(reply.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    def dead_letters(self) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = self.call("GET", "/_local/ingest/dead")[1]["messages"]
        return messages


@pytest.fixture
def sender() -> Iterator[Sender]:
    with LocalStack(frozen=True) as stack:
        yield Sender(stack.url)


def test_messages_under_one_key_are_called_back_once(sender: Sender) -> None:
    task = sender.new_task("box", delay_seconds=60)
    sender.send(task, idempotency_key="order-17")
    sender.advance(10)
    sender.send(task, idempotency_key="order-17")
    assert sender.advance(100) == 1


def test_dead_letters_can_be_listed_repeatedly(sender: Sender) -> None:
    good, bad = sender.new_task("box", delay_seconds=1), sender.new_task("box", retry=1)
    sender.send(b"{rubbish")
    for _ in range(12):
        sender.send({"tasks": [good, bad]})
    assert sender.advance(2) == 12
    letters = sender.dead_letters()
    assert len(letters) == 13
    assert sender.dead_letters() == letters
    assert sum(json.dumps(bad) in letter["body"] for letter in letters) == 12
    problems = [letter["attributes"]["problem"] for letter in letters]
    assert sorted(problems) == ["invalid-field"] * 12 + ["malformed-body"]


def test_a_message_that_sqs_refuses_is_refused(sender: Sender) -> None:
    for body, refused in ((b"", 422), (b"\x01", 422), (b"\xff", 400), (b"x" * 1_000_001, 400)):
        status, problem = sender.send(body)
        assert (status, problem["type"]) == (refused, "local-call"), body[:3]
    assert sender.send({}, idempotency_key="")[0] == 422
    for method, path in (("GET", "ingest"), ("POST", "ingest/dead"), ("GET", "ingest/dead/1")):
        status, _ = sender.call(method, f"/_local/{path}")
        assert status == (404 if path.endswith("1") else 405)


def test_without_an_ingest_queue_its_routes_do_not_exist() -> None:
    with LocalStack(frozen=True, overrides={"IngestBusinesses": ""}) as stack:
        assert Sender(stack.url).send(b"{}")[0] == 404


@pytest.mark.soak
@pytest.mark.parametrize("seed", [1, 2])
def test_under_faults_each_message_creates_each_of_its_tasks_once(seed: int) -> None:
    with LocalStack(frozen=True, faults=Faults(0.1, seed)) as stack:
        sender = Sender(stack.url)
        for n in range(20):
            tasks = [sender.new_task("box", delay_seconds=60, payload=[n, m]) for m in range(3)]
            sender.send(tasks[0] if n % 2 else {"tasks": tasks})
        sender.advance(3_600)
        ids: dict[str, set[str]] = {}
        for request in sender.received("box"):
            ids.setdefault(request["body"], set()).add(request["headers"]["webhook-id"])
        letters = sender.dead_letters()
    assert len(ids) == 10 * 3 + 10
    assert {len(of_one) for of_one in ids.values()} == {1}
    assert letters == []
