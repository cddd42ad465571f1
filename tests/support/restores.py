"""Restored tables of a stack, later losses in its tables, and `make reconcile`."""

from contextlib import suppress
from typing import Any

from infra.operate.reconcile import reconciled
from infra.operate.reconciling import DELIVER, Reconciling
from infra.operate.wheel_records import WheelRecords
from tests.support.damage import delete
from tests.support.world import World

RESTORED = ("restored-wheel", "restored-registry")


def restored(world: World) -> None:
    """Copies of both tables under other names, as a restore from this instant makes them."""
    settings = world.settings
    for name, table in zip(RESTORED, (settings.wheel_table, settings.registry_table), strict=True):
        described = world.unrecorded.describe_table(TableName=table)["Table"]
        attributes = {one["AttributeName"] for one in described["KeySchema"]}
        with suppress(world.unrecorded.exceptions.ResourceInUseException):  # it exists, emptied
            world.unrecorded.create_table(
                TableName=name,
                KeySchema=described["KeySchema"],
                AttributeDefinitions=[
                    one
                    for one in described["AttributeDefinitions"]
                    if one["AttributeName"] in attributes
                ],
                BillingMode="PAY_PER_REQUEST",
            )
        for item in items_of(world, table):
            world.unrecorded.put_item(TableName=name, Item=item)


def items_of(world: World, table: str) -> list[dict[str, Any]]:
    pages = world.unrecorded.get_paginator("scan").paginate(TableName=table)
    return [item for page in pages for item in page["Items"]]


def reconciling(
    world: World,
    overdue: str | None = DELIVER,
    *,
    writes: bool = True,
    per_second: int = 100,
    registry: str | None = RESTORED[1],
) -> Reconciling:
    records = WheelRecords(world.unrecorded, world.settings.registry_table, registry)
    return Reconciling(world.clock, world.tasks, records, world.origin, overdue, per_second, writes)


def reconcile(world: World, overdue: str | None = DELIVER, **options: Any) -> Reconciling:
    run = reconciling(world, overdue, **options)
    for line in reconciled(run, *RESTORED):
        assert line
    return run


def mended(world: World, overdue: str | None = None, **options: Any) -> list[str]:
    """The output without restored tables."""
    return list(reconciled(reconciling(world, overdue, registry=None, **options), None, None))


def lose_all_homes(world: World) -> None:
    for item in world.items():
        delete(world, item)
