"""Encodings of a payload, and the deduplication ids of a task's messages."""

import json

from msgspec.structs import replace

from duewheel.rules.callbacks.aws.sqs import TARGET as SQS
from duewheel.rules.callbacks.aws.sqs import SqsCallback
from duewheel.rules.callbacks.payload_encoding import attributes_of, envelope, text_of
from duewheel.rules.tasks.task import Task
from tests.rules.tasks.test_lifecycle import TASK
from tests.support.cases import each_case

FIFO = SqsCallback("https://sqs.us-east-1.amazonaws.com/123456789012/q.fifo", group_id="g")


@each_case("payload", ['{"b":1.0, "a":1e400,"a":2}', '"é\\u0000"', "null", None])
def test_an_envelope_contains_the_payload_byte_for_byte(payload: str | None) -> None:
    text = envelope(replace(TASK, attempts=2, payload=payload))
    assert text.endswith(f', "payload": {payload or "null"}}}')
    assert json.loads(text) == {
        "task_id": TASK.task_id,
        "biz_type": "orders",
        "due_at": "2030-03-17T17:46:40.000Z",
        "attempt": 3,
        "payload": None if payload is None else json.loads(payload),
    }


def test_a_raw_text_is_the_decoded_string() -> None:
    assert text_of('"<a>\\n\\"é\\""', is_raw=True) == '<a>\n"é"'
    assert text_of('"a"', is_raw=False) == '"a"'


def test_attributes_contain_task_and_attempt() -> None:
    assert attributes_of(replace(TASK, attempts=1)) == {
        "duewheel-task-id": TASK.task_id,
        "duewheel-due-at": "2030-03-17T17:46:40.000Z",
        "duewheel-attempt": "2",
        "duewheel-biz-type": "orders",
    }


def sent_id(callback: SqsCallback, task: Task) -> str:
    members = SQS.request(callback, task)
    return str(members["MessageDeduplicationId"])


def test_a_repeat_has_the_same_deduplication_id() -> None:
    first = sent_id(FIFO, TASK)
    assert first.startswith(f"{TASK.task_id}.0.")
    assert len(first) <= 128
    assert sent_id(FIFO, replace(TASK, attempts=7, version=9)) == first


def test_a_redrive_or_another_message_has_another_deduplication_id() -> None:
    changed = {
        sent_id(FIFO, TASK),
        sent_id(FIFO, replace(TASK, redrives=1)),
        sent_id(FIFO, replace(TASK, payload="1")),
        sent_id(replace(FIFO, group_id="h"), TASK),
        sent_id(replace(FIFO, attributes=(("a", "b"),)), TASK),
        sent_id(replace(FIFO, is_raw=True), TASK),
    }
    assert len(changed) == 6
