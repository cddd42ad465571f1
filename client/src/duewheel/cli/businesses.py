"""`duewheel business …`: settings, pauses, dead tasks, statistics."""

import sys
from datetime import datetime
from typing import Any

import click

from duewheel.cli import arguments
from duewheel.cli.arguments import fields_of
from duewheel.cli.framework import Group, client, output
from duewheel.cli.operations import counted
from duewheel.cli.progress import many_of, many_tasks
from duewheel.cli.shown import members
from duewheel.requests import BusinessSettings
from duewheel.values import Change, Counts

COLUMNS = (
    *("biz_type", "version", "paused", "lane", "calls_per_second"),
    *("updated_at", "last_task_at"),
)
DEAD_COLUMNS = ("task_id", "key", "due_at", "settled_at", "reason", "attempts", "last_error")
CHANGE_COLUMNS = ("version", "at", "by", "did", "fields")
SETTINGS = frozenset(BusinessSettings.__annotations__)
LIMIT = 100


@click.group(cls=Group)
def business() -> None:
    """Settings, pauses, dead tasks and statistics of businesses."""


@business.command(name="list")
def list_businesses() -> None:
    """List the businesses that have settings, or have had tasks (version 0 without settings)."""
    output().rows(client().businesses.list(), COLUMNS)


@business.command()
@click.argument("name", metavar="BUSINESS")
def get(name: str) -> None:
    """Show a business's settings, its open circuit breakers, and the use of its limits."""
    output().value(client().businesses.get(name))


@business.command(name="set", epilog=f"Settings: {', '.join(sorted(SETTINGS))}.")
@click.argument("name", metavar="BUSINESS")
@click.argument("settings", metavar="NAME=VALUE...", type=arguments.field, nargs=-1, required=True)
@click.option("--if-version", "if_match", type=int, help="Only if it has this version.")
def set_settings(name: str, settings: tuple[tuple[str, Any], ...], if_match: int | None) -> None:
    """Set the named settings and keep the rest; NAME= restores a default.

    A value that is JSON is meant so, and the rest is text; NAME@FILE takes JSON from a file.
    """
    named = fields_of(settings, SETTINGS)
    changed = client().businesses.configure(name, if_match=if_match, **named)
    output().done(changed, f"{name} is at version {changed.version}")


of_key = click.option("--flow-key", metavar="KEY", help="Only its tasks with this flow key.")


@business.command()
@click.argument("name", metavar="BUSINESS")
@of_key
def pause(name: str, flow_key: str | None) -> None:
    """Park its tasks when they fall due, until it is resumed."""
    if flow_key is None:
        output().done(client().businesses.pause(name), f"{name} is paused")
        return
    paused = client().businesses.pause_key(name, flow_key)
    output().done(paused, f"{flow_key} of {name} is paused")


@business.command()
@click.argument("name", metavar="BUSINESS")
@of_key
def resume(name: str, flow_key: str | None) -> None:
    """Call its parked tasks, in due order and at its rate."""
    if flow_key is None:
        output().done(client().businesses.resume(name), f"{name} is resumed")
        return
    resumed = client().businesses.resume_key(name, flow_key)
    output().done(resumed, f"{flow_key} of {name} is resumed")


@business.command()
@click.argument("name", metavar="BUSINESS")
@click.argument("host")
def probe(name: str, host: str) -> None:
    """Let its next due call try a HOST that keeps failing, at once."""
    probed = client().businesses.probe(name, host)
    output().done(probed, f"The next due call of {name} tries {host}")


@business.command()
@click.argument("name", metavar="BUSINESS")
@click.option("--cancel-pending", is_flag=True, help="Cancel its tasks, and delete its timers.")
@arguments.yes
def delete(name: str, *, cancel_pending: bool, yes: bool) -> None:
    """Delete a business's settings; refused while it has tasks or timers."""
    api, cursor, cancelled, timers = client(), None, 0, 0
    if not yes:
        what = f"the settings of {name}{_more_of(name) if cancel_pending else ''}"
        click.confirm(f"Delete {what}?", abort=True, err=True)
    too_late: list[str] = []
    while True:
        page = api.businesses.delete(name, cancel_pending=cancel_pending, cursor=cursor)
        cancelled, timers, cursor = cancelled + page.cancelled, timers + page.timers, page.cursor
        too_late += page.too_late
        if page.done:
            break
    counts = {"cancelled": cancelled, "timers": timers, "too_late": too_late}
    sentence = f"{name} is deleted; {cancelled:,} tasks cancelled, {timers:,} timers deleted"
    output().done(counts, sentence)
    if too_late:
        output().note(f"Too late for {len(too_late):,}: {', '.join(too_late)}")


def _more_of(name: str) -> str:
    """What else is deleted with it."""
    api = client()
    timers = many_of(api.timers.list(name), "timer")
    tasks = counted(api, name, "cancel", {"filter": {}}).changed
    return f" and {timers}, and cancel {many_tasks(tasks)}"


@business.command()
@click.argument("name", metavar="BUSINESS")
@arguments.dead_filter
@click.option("--limit", type=click.IntRange(1), default=LIMIT, show_default=True)
def dead(name: str, limit: int, **which: Any) -> None:
    """List dead tasks, the latest death first."""
    tasks = client().businesses.dead(name, page_size=min(limit + 1, LIMIT), **which)
    output().first(tasks, DEAD_COLUMNS, limit)


@business.command()
@click.argument("name", metavar="BUSINESS")
@click.option(
    "--from", "begin", type=arguments.instant, metavar="TIME", help="An hour ago if left out."
)
@click.option("--to", "end", type=arguments.instant, metavar="TIME", help="Now if left out.")
def stats(name: str, begin: datetime | None, end: datetime | None) -> None:
    """Count the outcomes of a business's tasks, by minute."""
    found = client().businesses.statistics(name, begin=begin, end=end)
    if output().is_json:
        output().value(found)
        return
    columns = ("created", "pending", "delivered", "dead", "expired", "cancelled", "failed_attempts")
    output().value(found.total, "lateness")
    if found.total.delivered:
        half, nearly_all = late(found.total, 0.5), late(found.total, 0.99)
        most_ms = found.total.lateness.max_ms
        click.echo(f"late: p50 {half}, p99 {nearly_all}, most {most_ms:,} ms")
    if found.minutes:
        rows = [{**members(minute), "p99_late": late(minute, 0.99)} for minute in found.minutes]
        output().rows(rows, ("at", *columns, "p99_late"))


def late(counts: Counts, share: float) -> str | None:
    """By how much so many of its delivered tasks were late at most."""
    before = 0
    for name in sorted(counts.lateness.counts, key=_bound_ms):
        before += counts.lateness.counts[name]
        if before >= share * counts.delivered:
            bound_ms = min(_bound_ms(name), counts.lateness.max_ms)
            return f"≤ {bound_ms:,} ms"
    return None


def _bound_ms(name: str) -> int:
    """`up_to_100_ms`; the last class has no bound."""
    digits = "".join(character for character in name if character.isdigit())
    return int(digits) if digits else sys.maxsize


@business.command()
@click.argument("name", metavar="BUSINESS")
def changes(name: str) -> None:
    """Show its last changes: who, when, what."""
    show_changes(client().businesses.changes(name))


def show_changes(found: tuple[Change, ...]) -> None:
    output().rows(found, CHANGE_COLUMNS)
