"""`make reconcile STACK=…`: repair items that were deleted from a stack's tables, or edited there.

It rebuilds what tasks need (entries, keys, parked items, headers) from the stack's own wheel. It
brings lost tasks and definitions back from tables that were restored from a point in time, if they
are given; items that are still in the stack's own tables are not touched.

By default it only prints, a line for each, what it would do; `--write` does it. It may be run again
at any time, and then finds less. A task that fell due meanwhile may have been called: `--overdue`
decides what to do with those. docs/operations.md has the procedure.
"""

import argparse
import sys
from collections.abc import Iterator
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from duewheel.clock import Clock, SystemClock
from duewheel.stores.aws_clients import retry_conflicts
from duewheel.stores.dynamodb import Throttled
from duewheel.stores.tasks.tasks import TaskStore
from infra.operate.admin_key import NoSuchStack, outputs_of
from infra.operate.bring_back import BringBack
from infra.operate.mend import Mend
from infra.operate.reconciling import DELIVER, EXPIRE, NotReconciled, Reconciling
from infra.operate.region import take_region
from infra.operate.wheel_records import WheelRecords


def main(arguments: list[str] | None = None) -> int:
    args = _parsed(arguments)
    try:
        take_region()
        client = boto3.client("dynamodb")
        retry_conflicts(client)
        outputs = outputs_of(boto3.client("cloudformation"), args.stack)
        run = of_stack(client, outputs, SystemClock(), args)
        for line in reconciled(run, args.wheel, args.registry):
            print(line)
    except (BotoCoreError, ClientError, Throttled, NoSuchStack, NotReconciled) as error:
        print(f"Not reconciled: {error}", file=sys.stderr)
        return 1
    for what, number in sorted(run.found.items()):
        print(f"{number:>10}  {what}", file=sys.stderr)
    done = "This was written." if args.write else "Nothing was written: add --write."
    print(done, file=sys.stderr)
    return 0


def reconciled(run: Reconciling, wheel: str | None, registry: str | None) -> Iterator[str]:
    """The repair of tasks comes after the restored ones, to include them."""
    if registry:
        yield from BringBack(run).definitions(registry)
    if wheel:
        yield from BringBack(run).wheel(wheel)
    yield from Mend(run)()
    yield from BringBack(run).wheel_records()


def of_stack(client: Any, outputs: dict[str, str], clock: Clock, args: Any) -> Reconciling:
    """The reconciling of a stack, with its tables and its layout."""
    wheel, registry = outputs["WheelTable"], outputs["RegistryTable"]
    records = WheelRecords(client, registry, args.registry)
    shape = records.shape()
    if shape is None:
        raise NotReconciled("The wheel has no shape: the stack never ran, or name its REGISTRY.")
    table = client.describe_table(TableName=wheel)["Table"]
    indexes = {index["IndexName"] for index in table.get("GlobalSecondaryIndexes", [])}
    buckets, origin = (int(shape[name]["N"]) for name in ("buckets", "origin"))
    tasks = TaskStore(
        client=client,
        clock=clock,
        table=wheel,
        buckets=buckets,
        list_index="by_business" in indexes,
    )
    return Reconciling(clock, tasks, records, origin, args.overdue, args.per_second, args.write)


def _parsed(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make reconcile", description=__doc__)
    parser.add_argument("stack", help="the name of the deployed stack")
    parser.add_argument("--wheel", help="the table that its Wheel was restored to")
    parser.add_argument("--registry", help="the table that its Registry was restored to")
    parser.add_argument("--overdue", choices=(DELIVER, EXPIRE))
    parser.add_argument("--per-second", type=int, choices=range(1, 901), default=100, metavar="N")
    parser.add_argument("--write", action="store_true")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
