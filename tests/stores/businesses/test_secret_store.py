"""Secrets are stored in their table, each bound to its business; a process opens each of them
once."""

from collections.abc import Callable

import boto3
import pytest
from botocore.exceptions import ConnectTimeoutError

from duewheel.stores.businesses.secret_store import (
    SecretGone,
    SecretStore,
    SecretTable,
    SecretUnavailable,
)
from local.aws.resources import Resources
from tests.support.clock import ManualClock
from tests.support.recorder import Recorder

SECRET = b"thirty-two bytes of no consequence"


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def fresh_store(
    resources: Resources, recorder: Recorder, clock: ManualClock
) -> Callable[[], SecretStore]:
    """A store of another process, which has opened no secret."""
    dynamodb = boto3.client("dynamodb")
    recorder.attach(dynamodb)
    numbers = iter(range(100))
    table = SecretTable(
        dynamodb,
        clock,
        resources.table_name("Secrets"),
        lambda number: next(numbers).to_bytes(number, "big"),
    )
    return lambda: SecretStore(table)


@pytest.fixture
def store(fresh_store: Callable[[], SecretStore]) -> SecretStore:
    return fresh_store()


def put(store: SecretStore, biz_type: str, *secrets: bytes) -> list[str]:
    new = store.new(biz_type)
    stored = [new.add(secret) for secret in secrets]
    new.write()
    return stored


def test_a_secret_of_another_business_can_be_neither_opened_nor_deleted(store: SecretStore) -> None:
    (stored,) = put(store, "orders", SECRET)
    with pytest.raises(SecretUnavailable):
        store.open("mails", stored)
    store.delete("mails", [stored])
    assert store.open("orders", stored) == SECRET


def test_a_process_opens_a_secret_once(store: SecretStore, recorder: Recorder) -> None:
    secrets = [SECRET + bytes([number]) for number in range(3)]
    stored = put(store, "orders", *secrets)
    recorder.clear()
    for _ in range(5):
        assert [store.open("orders", one) for one in stored] == secrets
    assert len(recorder.operations()) == 3


def test_a_failure_to_open_is_not_cached(store: SecretStore, recorder: Recorder) -> None:
    (stored,) = put(store, "orders", SECRET)

    def fail(_: object) -> None:
        raise ConnectTimeoutError(endpoint_url="https://aws")

    recorder.before = fail
    with pytest.raises(SecretUnavailable):
        store.open("orders", stored)
    recorder.before = None
    assert store.open("orders", stored) == SECRET


def test_a_secret_in_the_table_is_there_when_it_is_written_until_it_is_deleted(
    fresh_store: Callable[[], SecretStore], recorder: Recorder
) -> None:
    store, new = fresh_store(), fresh_store().new("orders")
    stored = [new.add(SECRET), new.add(SECRET)]
    assert len(set(stored)) == 2
    with pytest.raises(SecretGone):
        store.open("orders", stored[0])
    recorder.clear()
    new.write()
    new.write()
    assert [store.open("orders", one) for one in stored] == [SECRET, SECRET]
    store.delete("orders", stored)
    for one in stored:
        with pytest.raises(SecretGone):
            fresh_store().open("orders", one)
    assert recorder.operations().count("BatchWriteItem") == 2


def test_an_item_that_was_edited_by_hand_is_no_secret(
    fresh_store: Callable[[], SecretStore], resources: Resources
) -> None:
    (stored,) = put(fresh_store(), "orders", SECRET)
    table, client = resources.table_name("Secrets"), boto3.client("dynamodb")
    (item,) = client.scan(TableName=table)["Items"]
    client.put_item(TableName=table, Item={**item, "secret": {"S": "text"}})
    with pytest.raises(SecretGone):
        fresh_store().open("orders", stored)
