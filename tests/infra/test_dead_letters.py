"""Messages that the notifier gave up can be listed without losing them, and sent again."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from duewheel.rules.wheel.addresses import address_of_task
from duewheel.rules.wheel.queue_messages import Lane
from duewheel.wiring import wheel as wheel_wiring
from functions.notifier import app as notifier
from infra.operate import audit, dead_letters
from local.stack import LocalStack
from tests.functions.conftest import Context, wired  # noqa: F401
from tests.local.test_stack import Service
from tests.support.clock import ManualClock
from tests.support.world import World

GARBAGE = "{rubbish"
GOOD = '{"second":1800000000,"shard":0,"page":"3"}'
SLOW = '{"second":1800000000,"shard":0,"page":"3s","places":["01800000000.500#abcdefghijk"]}'
DIRECT = '{"second":1800000000,"entries":["0:01800000000/500#abcdefghijk"]}'


@pytest.fixture
def dead_url(world: World) -> str:
    attributes = world.sqs.get_queue_attributes(
        QueueUrl=world.settings.slice_queue_url, AttributeNames=["RedrivePolicy"]
    )["Attributes"]
    arn = json.loads(attributes["RedrivePolicy"])["deadLetterTargetArn"]
    url: str = world.sqs.get_queue_url(QueueName=arn.rpartition(":")[2])["QueueUrl"]
    return url


def urls(world: World) -> dict[Lane, str]:
    return {lane: queue.url for lane, queue in world.queues.items()}


def waiting(world: World, url: str) -> int:
    count = world.sqs.get_queue_attributes(
        QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages"]
    )["Attributes"]["ApproximateNumberOfMessages"]
    return int(count)


def test_an_unreadable_message_ends_in_the_dead_letter_queue(
    world: World,
    dead_url: str,
    wired: ManualClock,  # noqa: F811
) -> None:
    url = world.settings.slice_queue_url
    world.sqs.send_message(QueueUrl=url, MessageBody=GARBAGE)
    answer = world.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["RedrivePolicy"])
    for _ in range(json.loads(answer["Attributes"]["RedrivePolicy"])["maxReceiveCount"]):
        (message,) = world.receive()
        record = {
            "messageId": message["MessageId"],
            "receiptHandle": message["ReceiptHandle"],
            "body": message["Body"],
        }
        reply: Any = notifier.handler({"Records": [record]}, Context())
        assert reply["batchItemFailures"] == [{"itemIdentifier": message["MessageId"]}]
        world.clock.advance_ms(91_000)
    assert world.receive() == []
    assert waiting(world, dead_url) == 1


def test_a_list_leaves_the_queue_as_it_was(world: World, dead_url: str) -> None:
    for body in (GOOD, SLOW, DIRECT, GARBAGE):
        world.sqs.send_message(QueueUrl=dead_url, MessageBody=body)
    for _ in range(2):
        lines = sorted(dead_letters.listed(world.sqs, dead_url, world.clock))
        assert [line.partition("  received")[0] for line in lines] == [
            "2027-01-15T08:00:00.000Z  1 direct entries",
            "2027-01-15T08:00:00.000Z  shard 0, page 3",
            "2027-01-15T08:00:00.000Z  shard 0, page 3s, 1 entries, slow lane",
            'no message of this service: "{rubbish"',
        ]
    assert waiting(world, dead_url) == 4


FORGED = "x\n2027-01-15T08:00:00.000Z  shard 0, page 3"


def test_text_of_senders_is_listed_as_one_line_of_visible_ascii(
    world: World, dead_url: str
) -> None:
    """A detail contains the name of the refused member, as its sender has spelt it."""
    hostile = f"{FORGED}\r\x1b[2J\x9b2J\x7f\u2028\u202e\ud800"
    attributes = {
        name: {"DataType": "String", "StringValue": text}
        for name, text in (("problem", "invalid-field"), ("detail", hostile))
    }
    message = {"MessageId": "1", "Body": "{}", "MessageAttributes": attributes}
    for line in (dead_letters._line(message, 0), dead_letters._line({"Body": hostile}, 0)):
        assert line.isascii()
        assert line.isprintable()
    world.sqs.send_message(
        QueueUrl=dead_url,
        MessageBody="{}",
        MessageAttributes={**attributes, "detail": {"DataType": "String", "StringValue": FORGED}},
    )
    (line,) = dead_letters.listed(world.sqs, dead_url, world.clock)
    assert line.startswith("invalid-field  x\\n2027-01-15")
    assert line.isprintable()


def test_a_redrive_moves_valid_messages_and_leaves_unreadable_ones(
    world: World, dead_url: str
) -> None:
    for body in (GOOD, SLOW, GARBAGE):
        world.sqs.send_message(QueueUrl=dead_url, MessageBody=body)
    moved, left = dead_letters.redriven(world.sqs, dead_url, urls(world))
    assert (moved, left) == ({Lane.MAIN: 1, Lane.SLOW: 1}, 1)
    for lane, body in ((Lane.MAIN, GOOD), (Lane.SLOW, SLOW)):
        (message,) = world.receive(lane)
        assert message["Body"] == body
        world.handle(message)
    assert world.receiver.received == []


@contextmanager
def receives_take(world: World, seconds: int) -> Iterator[None]:
    """The duration of a request for many messages, or for large ones."""

    def pass_time(call: Any) -> None:
        if call.operation == "ReceiveMessage":
            world.clock.advance_ms(seconds * 1000)

    world.recorder.after = pass_time
    yield
    world.recorder.after = None


def test_a_redrive_that_takes_hours_moves_each_message_once(world: World, dead_url: str) -> None:
    pages = [GOOD.replace('"3"', f'"{page}"') for page in range(60)]
    for body in (*pages, GARBAGE):
        world.sqs.send_message(QueueUrl=dead_url, MessageBody=body)
    with receives_take(world, 600):
        moved, left = dead_letters.redriven(world.sqs, dead_url, urls(world))
    assert (moved, left) == ({Lane.MAIN: 60}, 1)
    assert sorted(m["Body"] for _ in range(9) for m in world.receive()) == sorted(pages)
    assert waiting(world, dead_url) == 1


def test_a_list_that_takes_long_contains_each_message_once_and_ends(
    world: World, dead_url: str
) -> None:
    for _ in range(60):
        world.sqs.send_message(QueueUrl=dead_url, MessageBody=GARBAGE)
    with receives_take(world, 100):
        assert len(dead_letters.listed(world.sqs, dead_url, world.clock)) == 60
    with receives_take(world, 600):
        assert len(dead_letters.listed(world.sqs, dead_url, world.clock)) <= 60
    assert waiting(world, dead_url) == 60


def test_a_list_has_a_greatest_length(
    world: World, dead_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letters, "LISTED_MAX", 20)
    for _ in range(31):
        world.sqs.send_message(QueueUrl=dead_url, MessageBody=GARBAGE)
    assert len(dead_letters.listed(world.sqs, dead_url, world.clock)) == 20
    assert waiting(world, dead_url) == 31


def test_a_message_sent_and_not_deleted_is_in_both_queues(world: World, dead_url: str) -> None:
    """It is never in neither queue: no message is lost when a move is interrupted."""
    world.sqs.send_message(QueueUrl=dead_url, MessageBody=GOOD)

    def die(call: Any) -> None:
        if call.operation == "DeleteMessage":
            raise ConnectionError

    world.recorder.before = die
    with pytest.raises(ConnectionError):
        dead_letters.redriven(world.sqs, dead_url, urls(world))
    world.recorder.before = None
    assert len(world.receive()) == 1
    assert waiting(world, dead_url) == 1, "the message is visible immediately"


def test_the_audit_command_fails_only_if_it_finds_damage(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "AHEAD", timedelta(minutes=1))
    with LocalStack(frozen=True) as stack:
        assert audit.main([stack.url]) == 0
        assert "nothing is wrong" in capsys.readouterr().out

        task = Service(stack.url).create("box", delay_seconds=30)
        home = address_of_task(task["task_id"])
        tasks = wheel_wiring.tasks()
        found = tasks.get(home)
        assert found is not None
        item = {**tasks.item(found), "next_ms": {"S": "never"}}
        tasks.client.put_item(TableName=tasks.table, Item=item)
        assert audit.main([stack.url]) == 1
        out = capsys.readouterr().out
        assert "unreadable" in out
        assert task["task_id"] in out
    assert audit.main(["http://127.0.0.1:9"]) == 2
