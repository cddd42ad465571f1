"""`duewheel operation …`: changes of many tasks, which the service carries out by itself."""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, get_args

import click

from duewheel._sync.client import Duewheel
from duewheel.cli import arguments
from duewheel.cli.framework import Group, client, output
from duewheel.cli.progress import followed, many_tasks, sentence
from duewheel.errors import OperationEnded
from duewheel.requests import Action, OperationState
from duewheel.values import Operation, RefusedTask

COLUMNS = ("operation_id", "action", "dry_run", "state", "changed", "refused", "created_at")
IDS_MAX = 500
INTERRUPTED = 130
LIMIT = 100
STATES = get_args(OperationState)


@click.group(cls=Group)
def operation() -> None:
    """Change many tasks of a business: cancel, reschedule, run, redrive."""


@operation.command()
@click.argument("action", type=click.Choice(get_args(Action)))
@click.argument("business")
@click.argument("task_ids", metavar="[TASK-ID]...", nargs=-1)
@arguments.task_filter
@arguments.dead_filter
@click.option("--all", "is_all", is_flag=True, help="All tasks that the action can change.")
@click.option("--due", type=arguments.due, metavar="TIME", help="When rescheduled tasks are due.")
@click.option("--later", type=arguments.span, metavar="SPAN", help="Or by how much later.")
@click.option("--earlier", type=arguments.span, metavar="SPAN", help="Or by how much earlier.")
@click.option("--per-second", type=click.IntRange(1), metavar="N", help="At most so many a second.")
@click.option("--dry-run", is_flag=True, help="Only count the tasks.")
@arguments.yes
@click.option("--no-wait", is_flag=True, help="Do not follow it to its end.")
def start(
    action: Action,
    business: str,
    task_ids: tuple[str, ...],
    *,
    is_all: bool,
    due: datetime | timedelta | None,
    later: timedelta | None,
    earlier: timedelta | None,
    per_second: int | None,
    dry_run: bool,
    yes: bool,
    no_wait: bool,
    **filters: Any,
) -> None:
    """Change the tasks of these ids, or all that match the filter.

    For one TASK-ID of - they are read from stdin: ids, or the lines of `task list --json`. The
    number of tasks is shown before the command asks. Ctrl-C does not stop a started operation.
    """
    if "-" in task_ids and not (yes or dry_run):
        raise click.UsageError("Ids from stdin leave no way to confirm: add --yes or --dry-run")
    given: dict[str, Any] = {
        **_selection(task_ids, filters, is_all=is_all),
        **_instant(action, due, later, earlier),
        "per_second": per_second,
    }
    api = client()
    if dry_run:
        end(counted(api, business, action, given))
        return
    total = len(given["ids"]) if "ids" in given else None
    if not yes:
        total = counted(api, business, action, given).changed if total is None else total
        if not total:
            output().note(f"There is no task of {business} to {action}.")
            return
        click.confirm(
            f"{action.capitalize()} {many_tasks(total)} of {business}?", abort=True, err=True
        )
    begun = api.operations.start(business, action, once=True, **given)
    if no_wait:
        output().done(begun, f"{begun.operation_id} is {begun.state}")
    else:
        end(followed_to_end(api, begun.operation_id, total))


def _selection(task_ids: Sequence[str], filters: dict[str, Any], *, is_all: bool) -> dict[str, Any]:
    """The ids, or the filter; never all tasks by a forgotten option."""
    named = {name: value for name, value in filters.items() if value is not None}
    if bool(task_ids) + bool(named) + is_all != 1:
        raise click.UsageError("Say which tasks: by their ids, by a filter, or --all")
    if not task_ids:
        return {"filter": named}
    ids = list(_ids(task_ids))
    if not ids:
        raise click.UsageError("There are no ids on stdin")
    if len(ids) > IDS_MAX:
        raise click.UsageError(f"{len(ids):,} ids are more than {IDS_MAX}: use a filter, or parts")
    return {"ids": ids}


def _ids(task_ids: Sequence[str]) -> Iterator[str]:
    if tuple(task_ids) != ("-",):
        yield from task_ids
        return
    for line in sys.stdin:
        if line.startswith("{"):
            yield json.loads(line)["task_id"]
        else:
            yield from line.split()


def _instant(
    action: Action,
    due: datetime | timedelta | None,
    later: timedelta | None,
    earlier: timedelta | None,
) -> dict[str, Any]:
    given = {"--due": due, "--later": later, "--earlier": earlier}
    named = [name for name, value in given.items() if value is not None]
    if len(named) != (action == "reschedule"):
        raise click.UsageError("A reschedule, and no other, has one of --due, --later, --earlier")
    if due is not None:
        return {"due_at": arguments.instant_of(due)}
    if earlier is not None:
        return {"shift": -earlier}
    return {} if later is None else {"shift": later}


def counted(api: Duewheel, business: str, action: Action, given: dict[str, Any]) -> Operation:
    """By a dry run, which has no pace and ends with the command."""
    counting = {**given, "per_second": None, "dry_run": True}
    begun = api.operations.start(business, action, once=True, **counting)
    try:
        found = followed(api, begun.operation_id, None)
    except KeyboardInterrupt:
        with suppress(OperationEnded):
            api.operations.stop(begun.operation_id)
        raise
    if found.state != "done":
        end(found)
    return found


def followed_to_end(api: Duewheel, operation_id: str, total: int | None) -> Operation:
    """Ctrl-C ends the command, and not the operation."""
    try:
        return followed(api, operation_id, total)
    except KeyboardInterrupt:
        output().note(
            f"The operation goes on. To follow it: duewheel operation follow {operation_id}; "
            f"to stop it: duewheel operation stop {operation_id}"
        )
        raise click.exceptions.Exit(INTERRUPTED) from None


def end(ended: Operation) -> None:
    """Exit code 1 unless all tasks were changed."""
    output().done(ended, sentence(ended))
    if ended.refused:
        output().note(f"duewheel operation refused {ended.operation_id} shows why")
    if ended.refused or ended.state != "done":
        click.get_current_context().exit(1)


@operation.command(name="list")
@click.argument("business", required=False)
@click.option("--state", type=click.Choice(STATES))
@click.option("--limit", type=click.IntRange(1), default=LIMIT, show_default=True)
def list_operations(business: str | None, state: OperationState | None, limit: int) -> None:
    """List operations, the latest first: of a business, or of all."""
    columns = COLUMNS if business else ("biz_type", *COLUMNS)
    found = client().operations.list(business, state=state, page_size=min(limit + 1, LIMIT))
    output().first(found, columns, limit)


@operation.command()
@click.argument("operation_id", metavar="OPERATION")
def get(operation_id: str) -> None:
    """Show an operation and how far it is."""
    output().value(client().operations.get(operation_id))


@operation.command()
@click.argument("operation_id", metavar="OPERATION")
def follow(operation_id: str) -> None:
    """Follow an operation to its end. Fails unless it changed all its tasks."""
    end(followed_to_end(client(), operation_id, None))


@operation.command()
@click.argument("operation_id", metavar="OPERATION")
def stop(operation_id: str) -> None:
    """Stop an operation. The tasks that it changed stay changed."""
    stopped = client().operations.stop(operation_id)
    output().done(stopped, f"{operation_id} is {stopped.state}: {sentence(stopped)}")


@operation.command()
@click.argument("operation_id", metavar="OPERATION")
@click.option("--limit", type=click.IntRange(1), default=LIMIT, show_default=True)
def refused(operation_id: str, limit: int) -> None:
    """List the tasks that could not be changed, and why."""
    found = client().operations.refused(operation_id, page_size=min(limit + 1, LIMIT))
    output().first(found if output().is_json else map(_said, found), ("task_id", "why"), limit)


def _said(one: RefusedTask) -> dict[str, str]:
    return {"task_id": one.task_id, "why": f"{one.problem['title']}: {one.problem['detail']}"}
