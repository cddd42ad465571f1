"""The sample events say what the service's own parts say."""

import json
from hashlib import md5
from pathlib import Path
from typing import Any

from duewheel.rules.access.api_keys import brought_by
from duewheel.rules.access.grants import ANYTHING
from duewheel.rules.callbacks.allowed_targets import HTTP_ALONE
from duewheel.rules.ingest.message import message_of, wanted
from duewheel.rules.tasks.requests import single_request
from duewheel.rules.tasks.task import NewTask
from duewheel.rules.wheel.addresses import address_named
from duewheel.rules.wheel.queue_messages import DirectMessage, PageMessage, decode

EVENTS = Path(__file__).parents[2] / "infra" / "events"


def sample(name: str) -> dict[str, Any]:
    event: dict[str, Any] = json.loads((EVENTS / f"{name}.json").read_text(encoding="utf-8"))
    return event


def test_sample_batch_holds_a_page_and_a_direct_message() -> None:
    records = sample("slice-queue-batch")["Records"]
    page, direct = (decode(record["body"]) for record in records)

    assert isinstance(page, PageMessage)
    assert isinstance(direct, DirectMessage)
    assert [address_named(name).second for name in direct.entries] == [direct.second]
    for record in records:
        assert record["md5OfBody"] == md5(record["body"].encode()).hexdigest()


def test_sample_request_to_the_authorizer_brings_a_key() -> None:
    event = sample("authorizer-request")

    assert event["identitySource"] == [event["headers"]["authorization"]]
    assert brought_by(event["identitySource"][0]) is not None


def test_sample_messages_of_the_ingest_queue_ask_for_a_task_and_for_a_batch() -> None:
    records = sample("ingest-queue-batch")["Records"]
    single, several = (wanted(message_of(record)) for record in records)

    assert (single.is_single, several.is_single) == (True, False)
    assert message_of(records[0]).key == "order-17-close"
    for record in records:
        assert record["md5OfBody"] == md5(record["body"].encode()).hexdigest()
        asked = wanted(message_of(record)).tasks(0, HTTP_ALONE, ANYTHING)
        assert all(isinstance(task, NewTask) for task in asked)


def test_sample_request_creates_a_task() -> None:
    event = sample("http-api-create-task")

    assert isinstance(single_request(event["body"], event["requestContext"]["timeEpoch"]), NewTask)
    assert event["headers"]["content-length"] == str(len(event["body"]))
