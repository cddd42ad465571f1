"""The record of a business: a record with a setting that is never written is damaged as a whole."""

import json
from typing import Any

import pytest

from duewheel.rules.businesses.flow import Flow, FlowLimits
from duewheel.rules.businesses.settings import Business, Defaults
from duewheel.stores import registry_keys
from duewheel.stores.businesses.settings import BusinessStore
from tests.support.clock import NOON_MS
from tests.support.world import World


@pytest.fixture
def store(world: World) -> BusinessStore:
    return BusinessStore(
        client=world.dynamodb,
        clock=world.clock,
        table=world.settings.registry_table,
        defaults=Defaults(7, 10.0, 30.0),
    )


def read(store: BusinessStore, settings: Any) -> Business:
    item = {
        **registry_keys.business("orders"),
        "version": {"N": "1"},
        "created_ms": {"N": str(NOON_MS)},
        "updated_ms": {"N": str(NOON_MS)},
        "settings": {"S": json.dumps(settings)},
    }
    store.client.put_item(TableName=store.table, Item=item)
    return store.read_many(["orders"])["orders"]


@pytest.mark.parametrize(
    "flow",
    [
        '{"default": {"calls_in_flight": 0}}',
        '{"default": {"calls_per_second": 0}}',
        '{"prefixes": {"a": {"calls_per_second": -1}}}',
        '{"default": {"in_order": true}, "set_ms": -1}',
    ],
)
def test_limits_of_flow_keys_that_are_never_written_are_damage(
    store: BusinessStore, flow: str
) -> None:
    assert read(store, {"flow": json.loads(flow)}).damaged == "settings"


def test_limits_of_flow_keys_are_read_as_they_are_written(store: BusinessStore) -> None:
    flow = '{"default": {"calls_in_flight": 2}, "prefixes": {"a": {"in_order": true}}, "set_ms": 5}'
    limits = FlowLimits(calls_in_flight=2), {"a": FlowLimits(in_order=True)}
    assert read(store, {"flow": json.loads(flow)}).own.flow == Flow(*limits, 5)


@pytest.mark.parametrize(
    "settings",
    [
        None,
        [],
        {"allowed_hosts": None},
        {"allowed_hosts": [7]},
        {"allowed_hosts": ["\ud800"]},  # half of a surrogate pair: no answer could have it
        {"callback": {"type": "unheard-of"}},
        {"calls_per_second": 0},
        {"calls_in_flight": True},
        {"priority": "fast"},
        {"retention_days": 0},
        {"retry_statuses": [200]},
        {"signing_secrets": [["hint"]]},
        {"signing_secrets": [["hint", 7]]},
        {"unknown": 1},
    ],
    ids=ascii,
)
def test_settings_that_are_never_written_are_damaged(store: BusinessStore, settings: Any) -> None:
    assert read(store, settings).damaged == "settings"
