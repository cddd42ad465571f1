"""`duewheel task …`: create, show and change tasks."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, get_args

import click

from duewheel.cli import arguments
from duewheel.cli.arguments import due_arguments, found_task, named_task, task_id_of
from duewheel.cli.framework import Group, client, output
from duewheel.cli.progress import looking
from duewheel.cli.shown import as_text, here
from duewheel.cli.waiting import why
from duewheel.cli.watching import watch
from duewheel.requests import UNSET, Priority
from duewheel.values import LookedAt, Task

COLUMNS = ("task_id", "status", "due_at", "next_at", "attempts", "key", "last_error")
PRIORITIES = get_args(Priority)
LIMIT = 100


@click.group(cls=Group)
def task() -> None:
    """Create, show and change tasks.

    A TASK is an id, or BUSINESS/KEY: orders/order-17:close.
    """


@task.command()
@click.argument("business", metavar="BUSINESS[/KEY]")
@click.option(
    "--due",
    type=arguments.due,
    metavar="TIME",
    required=True,
    help="in 2h, tomorrow 9:00, 2026-12-01T09:00Z …",
)
@click.option(
    "--payload",
    type=arguments.json_value,
    metavar="JSON",
    default=UNSET,
    help="The callback's body; @FILE, or -.",
)
@click.option(
    "--callback", type=arguments.callback, metavar="URL|JSON", help="Left out, the business has it."
)
@click.option(
    "--retry", type=arguments.json_value, metavar="JSON", help="Such as '{\"attempts\": 5}'."
)
@click.option(
    "--expires-after", type=arguments.span, metavar="SPAN", help="How late it may still be called."
)
@click.option(
    "--tolerance",
    type=arguments.span,
    metavar="SPAN",
    help="How much later it may be called, to share a second with others.",
)
@click.option(
    "--priority",
    type=click.Choice(PRIORITIES),
    help="Which tasks are served first where there is no room for all.",
)
@click.option("--flow-key", metavar="KEY", help="Whose limits and pause it follows.")
@arguments.labels
@click.option(
    "--on-outcome",
    type=arguments.json_value,
    metavar="JSON",
    help='Which outcomes make a notice: \'{"outcomes": ["dead"], "callback": {"url": …}}\'.',
)
@click.option("--replace", is_flag=True, help="Replace the live task of this key, if there is one.")
def create(business: str, due: datetime | timedelta, replace: bool, **given: Any) -> None:
    """Make a task. A key of your own makes it findable, and safe to make twice."""
    biz_type, key = named_task(business) or (business, None)
    fields = {**due_arguments(due), **given}
    if replace and key is None:
        raise click.UsageError("--replace needs BUSINESS/KEY")
    if replace and key is not None:
        made = client().tasks.put(biz_type, key, **fields)
    else:
        made = client().tasks.create(biz_type, key=key, once=key is None, **fields)
    output().done(made, f"{made.task_id} is due {here(made.due_at)}")


@task.command()
@click.argument("name", metavar="TASK")
def get(name: str) -> None:
    """Show a task with its last attempts, why it waits, and the answer that was kept."""
    found = found_task(client(), name)
    never = () if found.redrives else ("redrives",)
    output().value(found, "history", "waiting", "answer", *never)
    if output().is_json:
        return
    if found.waiting:
        click.echo(f"why: {as_text(why(found.waiting))}")
    if found.history:
        columns = ("at", "outcome", "status_code", "lateness_ms", "duration_ms", "host", "note")
        output().rows(found.history, columns)
    if found.answer:
        for name, value in found.answer.headers.items():
            click.echo(f"{name}: {as_text(value)}")
        click.echo(as_text(found.answer.body))


@task.command(name="list")
@click.argument("business", metavar="[BUSINESS[/KEY-PREFIX]]", required=False)
@arguments.task_filter
@click.option("--latest-first", "order", flag_value="desc", default="asc", help="By due instant.")
@click.option("--limit", type=click.IntRange(1), default=LIMIT, show_default=True)
def list_tasks(business: str | None, limit: int, **filters: Any) -> None:
    """List tasks by due instant: of a business, or of all, one after the other.

    Pending tasks: first those that are due from now on. Dead tasks: by their deaths. With a key
    prefix: the live tasks under it."""
    columns = COLUMNS if business else ("biz_type", *COLUMNS)
    with looking() as seen:
        found = list(islice(_listed(business, filters, min(limit + 1, LIMIT), seen), limit + 1))
    output().first(found, columns, limit)


def _listed(
    business: str | None, filters: dict[str, Any], page_size: int, seen: Callable[[LookedAt], None]
) -> Iterator[Task]:
    named = named_task(business) if business else None
    if named is None:
        return client().tasks.list(business, page_size=page_size, each_page=seen, **filters)
    if any(value not in (None, "asc") for value in filters.values()):
        raise click.UsageError("BUSINESS/KEY-PREFIX lists all live tasks: filter by --key-prefix")
    return client().tasks.list_by_prefix(*named, page_size=page_size)


@task.command()
@click.argument("name", metavar="TASK")
def cancel(name: str) -> None:
    """Cancel a task. When this succeeds the call is not made."""
    named = named_task(name)
    tasks = client().tasks
    cancelled = tasks.cancel_by_key(*named) if named else tasks.cancel(name)
    output().done(cancelled, f"{cancelled.task_id} is {cancelled.status}")


@task.command()
@click.argument("name", metavar="TASK")
@click.option(
    "--due",
    type=arguments.due,
    metavar="TIME",
    required=True,
    help="in 2h, tomorrow 9:00, 2026-12-01T09:00Z …",
)
def reschedule(name: str, due: datetime | timedelta) -> None:
    """Move a pending task earlier or later."""
    api = client()
    moved = api.tasks.change(task_id_of(api, name), **due_arguments(due))
    output().done(moved, f"{moved.task_id} is due {here(moved.due_at)}")


@task.command()
@click.argument("name", metavar="TASK")
def run(name: str) -> None:
    """Make the next attempt now."""
    api = client()
    begun = api.tasks.run(task_id_of(api, name))
    _made_due(begun, f"{begun.task_id} is called now", f"{begun.task_id} is due now")


@task.command()
@click.argument("name", metavar="TASK")
@click.option(
    "--until", type=arguments.instant, metavar="TIME", help="When it is called all the same."
)
def pause(name: str, until: datetime | None) -> None:
    """Put a pending task aside: it is not called until it is resumed."""
    api = client()
    paused = api.tasks.pause(task_id_of(api, name), until=until)
    output().done(
        paused, f"{paused.task_id} is paused until {here(paused.next_at or paused.due_at)}"
    )


@task.command()
@click.argument("name", metavar="TASK")
def resume(name: str) -> None:
    """Take a paused task back: it is called at its instant, or now if that has passed."""
    api = client()
    resumed = api.tasks.resume(task_id_of(api, name))
    output().done(resumed, f"{resumed.task_id} is due {here(resumed.next_at or resumed.due_at)}")


@task.command()
@click.argument("name", metavar="TASK")
def redrive(name: str) -> None:
    """Call a task that has ended again, now or at its due instant."""
    api = client()
    redriven = api.tasks.redrive(task_id_of(api, name))
    sentence = f"{redriven.task_id} is {redriven.status} again"
    _made_due(redriven, sentence, sentence)


def _made_due(task: Task, called: str, due: str) -> None:
    """What it says of a task that is called, and of one that waits."""
    waiting = task.waiting
    output().done(task, called if waiting is None else f"{due}, and waits: {why(waiting)}")
    if waiting is not None and waiting.host is not None:
        output().note(
            f"When the host works: duewheel business probe {task.biz_type} {waiting.host}, "
            f"then duewheel task run {task.task_id}"
        )


@task.command(name="watch")
@click.argument("name", metavar="TASK")
@click.pass_context
def watch_task(context: click.Context, name: str) -> None:
    """Follow a task until it has ended. Fails unless it was delivered."""
    api = client()
    task_id = task_id_of(api, name)
    last = None
    for last in watch(lambda: api.tasks.get(task_id), lambda: datetime.now(UTC)):
        output().done(last, _state_text(last))
    if last is None or last.status != "delivered":
        context.exit(1)


def _state_text(found: Task) -> str:
    words = [found.status, f"attempts {found.attempts}"]
    if found.parked:
        words.append("parked")
    if found.paused:
        words.append("paused")
    if found.next_at:
        words.append(f"next {here(found.next_at)}")
    if found.history:
        last = found.history[-1]
        words.append(f"last {last.outcome} {last.status_code or ''} {last.note}".strip())
    return ", ".join(words)
