"""Secrets of businesses are written before the record that names them, deleted after it, and
opened for their business alone."""

from typing import Any

import pytest
from msgspec.structs import replace

from duewheel.rules.businesses.requests import DeleteQuery
from duewheel.rules.callbacks.types import HttpCallback
from duewheel.rules.preconditions import Precondition
from duewheel.rules.refusals import InvalidField, Unavailable, VersionMismatch
from duewheel.rules.tasks.task import Status
from duewheel.stores.businesses.cache import KEPT_MS
from tests.support.recorder import Call
from tests.support.world import CALLER, World

FIRST, SECOND, THIRD = "first-0123456789", "second-0123456789", "third-0123456789"
OWN = HttpCallback("https://own.example/hook")
WITH_TOKEN = HttpCallback(OWN.url, headers=(("authorization", "{{secret:token}}"),))


def kept(world: World) -> set[bytes]:
    """The secrets in their table."""
    return {item["secret"]["B"] for item in world.unrecorded.scan(**_table(world))["Items"]}


def _table(world: World) -> dict[str, Any]:
    return {"TableName": world.settings.secrets_table}


def set_token(world: World, text: str | None, biz_type: str = "orders") -> None:
    world.configured(biz_type, callback=OWN, secrets={"token": text})


def sent(world: World) -> list[str]:
    return [call.headers[0][1] for call in world.receiver.callbacks]


def test_a_secret_is_put_before_its_record_and_a_replaced_one_is_deleted_after_it(
    world: World,
) -> None:
    set_token(world, FIRST)
    world.recorder.clear()
    set_token(world, SECOND)
    writes = [one for one in world.recorder.operations() if "Write" in one]
    assert writes == ["BatchWriteItem", "TransactWriteItems", "BatchWriteItem"]
    assert kept(world) == {SECOND.encode()}
    world.recorder.clear()
    world.configured("orders", retention_days=3)
    assert "BatchWriteItem" not in world.recorder.operations()
    set_token(world, None)
    assert kept(world) == set()


@pytest.mark.parametrize("writes", [1, 2, 3])
def test_a_crash_at_a_write_leaves_a_record_whose_secrets_open(world: World, writes: int) -> None:
    set_token(world, FIRST)
    task = world.created(callback=WITH_TOKEN)
    is_write = lambda call: "Write" in call.operation  # noqa: E731
    assert world.dies(lambda: set_token(world, SECOND), writes, counted=is_write)
    world.clock.advance_ms(KEPT_MS)
    assert world.fall_due(task).status is Status.DELIVERED
    assert sent(world) == [SECOND if writes == 3 else FIRST]


def test_a_refused_change_puts_no_secret(world: World) -> None:
    set_token(world, FIRST)
    world.recorder.clear()
    change = {"secrets": {"token": SECOND}}
    with pytest.raises(VersionMismatch):
        world.configure_business("orders", change, Precondition(7), by=CALLER)
    with pytest.raises(InvalidField):
        world.configured("orders", retry_statuses=(404,), stop_statuses=(404,), **change)
    assert "BatchWriteItem" not in world.recorder.operations()


def test_a_change_whose_secret_is_not_put_is_unavailable_and_changes_nothing(world: World) -> None:
    world.dynamodb.batch_write_item = lambda RequestItems: {"UnprocessedItems": RequestItems}
    with pytest.raises(Unavailable):
        set_token(world, FIRST)
    assert world.businesses.read_whole("orders").version == 0


def test_a_secret_that_is_not_deleted_does_not_fail_its_change(world: World) -> None:
    set_token(world, FIRST)
    put = world.dynamodb.batch_write_item

    def only_puts(RequestItems: Any) -> Any:
        (requests,) = RequestItems.values()
        if "PutRequest" in requests[0]:
            return put(RequestItems=RequestItems)
        return {"UnprocessedItems": RequestItems}

    world.dynamodb.batch_write_item = only_puts
    set_token(world, SECOND)
    assert world.businesses.read_whole("orders").version == 2
    assert kept(world) == {FIRST.encode(), SECOND.encode()}


def test_a_deleted_business_leaves_no_secret(world: World) -> None:
    set_token(world, FIRST)
    set_token(world, THIRD, "other")
    query = DeleteQuery()
    assert world.delete_business("orders", query, Precondition(), by=CALLER).done
    assert kept(world) == {THIRD.encode()}


def test_a_notifier_that_caches_earlier_settings_calls_with_the_current_secrets(
    world: World,
) -> None:
    signing = ["whsec_" + 32 * letter for letter in "AB"]
    world.configured("orders", signing_secrets=(signing[0],))
    set_token(world, FIRST)
    cached = world.cache_with_health.one("orders")
    world.configured("orders", signing_secrets=(signing[1],))
    set_token(world, SECOND)
    task = world.created(in_ms=1_000, callback=WITH_TOKEN)
    world.clock.advance_ms(1_000)
    assert world.cache_with_health.kept("orders") is cached
    world.drain()
    assert world.read(task).status is Status.DELIVERED
    assert sent(world) == [SECOND]


def test_a_secret_of_another_business_does_not_open(world: World) -> None:
    set_token(world, FIRST)
    set_token(world, SECOND, "other")
    damaged = world.businesses.read_whole("orders")
    theirs = world.businesses.read_whole("other").own.secrets
    copied = replace(damaged, own=replace(damaged.own, secrets=theirs), version=damaged.version + 1)
    assert world.businesses.write(damaged, copied, CALLER)
    task = world.fall_due(world.created(callback=WITH_TOKEN))
    assert (task.status, task.attempts) == (Status.PENDING, 1)
    assert task.last_error == "cannot be filled in: the secrets do not open"
    assert sent(world) == []
    set_token(world, THIRD)
    assert SECOND.encode() in kept(world), "the other business still has its own"


def test_a_call_waits_for_lost_secrets_and_is_made_when_they_are_set_again(world: World) -> None:
    world.configured("orders", signing_secrets=("whsec_" + 32 * "A",))
    for item in world.unrecorded.scan(**_table(world))["Items"]:
        world.unrecorded.delete_item(**_table(world), Key={"id": item["id"]})
    task = world.fall_due(world.created())
    assert (task.status, task.attempts) == (Status.PENDING, 1)
    assert task.last_error == "cannot be signed: the secrets do not open"
    world.configured("orders", signing_secrets=("whsec_" + 32 * "A",))
    world.clock.advance_ms(KEPT_MS)
    assert world.fall_due(task).status is Status.DELIVERED


def test_a_change_names_no_secret_that_was_deleted_with_its_business(world: World) -> None:
    """A business that was created anew while the change is under way has the same version."""
    set_token(world, FIRST)

    def created_anew(call: Call) -> None:
        if call.operation == "TransactWriteItems":
            world.recorder.before = lambda _: None
            assert world.delete_business("orders", DeleteQuery(), Precondition(), by=CALLER).done
            world.clock.advance_ms(5)
            set_token(world, SECOND)

    world.recorder.before = created_anew
    world.configured("orders", retention_days=3)
    business = world.businesses.read_whole("orders")
    (secret,) = business.own.secrets or ()
    assert world.secret_store.open("orders", secret.secret_id) == SECOND.encode()
    assert kept(world) == {SECOND.encode()}
