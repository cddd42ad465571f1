"""`duewheel timer …`: definitions that produce tasks."""

from typing import Any, get_type_hints

import click

from duewheel.cli import arguments
from duewheel.cli.applying import apply
from duewheel.cli.arguments import fields_of
from duewheel.cli.businesses import LIMIT, show_changes
from duewheel.cli.framework import Group, client, output
from duewheel.cli.shown import as_text, here
from duewheel.requests import TimerChange, TimerFields
from duewheel.values import Timer

COLUMNS = (
    "timer_id",
    "name",
    "state",
    "disabled_reason",
    "cron",
    "every_seconds",
    "timezone",
    "next_at",
)
RUN_COLUMNS = ("task_id", "occurrence_at", "status", "attempts", "lateness_ms", "last_error")
FIELDS = frozenset(get_type_hints(TimerFields))
CHANGEABLE = frozenset(get_type_hints(TimerChange))
if_version = click.option("--if-version", "if_match", type=int, help="Only if it has this version.")
pairs = click.argument(
    "fields", metavar="NAME=VALUE...", type=arguments.field, nargs=-1, required=True
)


@click.group(cls=Group)
def timer() -> None:
    """Definitions that produce tasks, by cron or at an interval."""


@timer.command(epilog=f"Fields: {', '.join(sorted(FIELDS))}.")
@click.argument("business")
@click.argument("name")
@pairs
def create(business: str, name: str, fields: tuple[tuple[str, Any], ...]) -> None:
    """Make a timer: cron='0 3 * * *' timezone=Asia/Shanghai, or every_seconds=900.

    A value that is JSON is meant so, and the rest is text; NAME@FILE takes JSON from a file.
    """
    named = fields_of(fields, FIELDS)
    made = client().timers.create(business, name, once=True, **named)
    output().done(made, f"{made.timer_id} {_state_text(made)}")


@timer.command()
@click.argument("timer_id", metavar="TIMER")
def get(timer_id: str) -> None:
    """Show a timer, and its counters."""
    output().value(client().timers.get(timer_id))


@timer.command(name="list")
@click.argument("business", required=False)
@click.option("--name-prefix", help="Whose names begin so.")
@click.option("--state", type=click.Choice(["enabled", "disabled", "ended"]))
@arguments.labels
@click.option("--limit", type=click.IntRange(1), default=LIMIT, show_default=True)
def list_timers(business: str | None, limit: int, **filters: Any) -> None:
    """List timers by name: of a business, or of all, one after the other."""
    page_size = min(limit + 1, LIMIT)
    columns = COLUMNS if business else ("biz_type", *COLUMNS)
    output().first(client().timers.list(business, page_size=page_size, **filters), columns, limit)


@timer.command(epilog=f"Fields: {', '.join(sorted(CHANGEABLE))}.")
@click.argument("timer_id", metavar="TIMER")
@pairs
@if_version
def change(timer_id: str, fields: tuple[tuple[str, Any], ...], if_match: int | None) -> None:
    """Change the named fields and keep the rest; NAME= restores a default."""
    named = fields_of(fields, CHANGEABLE)
    changed = client().timers.change(timer_id, if_match=if_match, **named)
    output().done(changed, f"{timer_id} {_state_text(changed)}")


@timer.command()
@click.argument("timer_id", metavar="TIMER")
@if_version
def enable(timer_id: str, if_match: int | None) -> None:
    """Let it run."""
    enabled = client().timers.enable(timer_id, if_match=if_match)
    output().done(enabled, f"{timer_id} {_state_text(enabled)}")


@timer.command()
@click.argument("timer_id", metavar="TIMER")
@if_version
def disable(timer_id: str, if_match: int | None) -> None:
    """Disable it. From the answer on none of its occurrences is called."""
    disabled = client().timers.disable(timer_id, if_match=if_match)
    output().done(disabled, f"{timer_id} {_state_text(disabled)}")


@timer.command()
@click.argument("timer_id", metavar="TIMER")
@if_version
@arguments.yes
def delete(timer_id: str, *, if_match: int | None, yes: bool) -> None:
    """Delete a timer. Asks first."""
    api = client()
    if not yes:
        found = api.timers.get(timer_id)
        of = f"{found.name} of {found.biz_type} {_state_text(found)}"
        click.confirm(as_text(f"{of}. Delete 1 timer?"), abort=True, err=True)
    api.timers.delete(timer_id, if_match=if_match)
    output().done({"timer_id": timer_id, "deleted": True}, f"{timer_id} is deleted")


@timer.command()
@click.argument("timer_id", metavar="TIMER")
def run(timer_id: str) -> None:
    """Make one call of it now, enabled or not."""
    task = client().timers.run(timer_id, once=True)
    output().done(task, f"{task.task_id} is called now")


@timer.command()
@click.argument("timer_id", metavar="TIMER")
@click.option("--count", type=click.IntRange(1, 100), default=10, show_default=True)
def upcoming(timer_id: str, count: int) -> None:
    """Show its next occurrences."""
    for instant in client().timers.upcoming(timer_id, count=count):
        output().done(instant, here(instant))


@timer.command()
@click.argument("timer_id", metavar="TIMER")
@click.option("--status", help="Only those of this status.")
@click.option("--limit", type=click.IntRange(1), default=LIMIT, show_default=True)
def runs(timer_id: str, status: str | None, limit: int) -> None:
    """List its occurrences up to now, the latest first."""
    page_size = min(limit + 1, LIMIT)
    found = client().timers.runs(timer_id, status=status, page_size=page_size)
    output().first(found, RUN_COLUMNS, limit)


@timer.command()
@click.argument("timer_id", metavar="TIMER")
def changes(timer_id: str) -> None:
    """Show its last changes: who, when, what."""
    show_changes(client().timers.changes(timer_id))


timer.add_command(apply)


def _state_text(found: Timer) -> str:
    reason = f": {found.disabled_reason}" if found.disabled_reason else ""
    return f"is {found.state}{reason}" + (f", next {here(found.next_at)}" if found.next_at else "")
