"""`duewheel key …`: API keys, for deployments whose callers have them."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import click

from duewheel._sync.client import Duewheel
from duewheel.cli import arguments
from duewheel.cli.arguments import instant_of
from duewheel.cli.businesses import show_changes
from duewheel.cli.framework import Group, client, output
from duewheel.cli.progress import many_of
from duewheel.cli.shown import as_text
from duewheel.values import ApiKey, Grant, Operation

COLUMNS = ("key_id", "name", "grants", "state", "expires_at", "last_used_on")
BEGUN_COLUMNS = ("kind", "id", "biz_type", "name")


@click.group(cls=Group)
def key() -> None:
    """API keys of callers, and their grants."""


@key.command()
@click.argument("name")
@click.option(
    "--grant",
    "grants",
    type=arguments.grant,
    metavar="RIGHT:BUSINESSES",
    multiple=True,
    required=True,
    help="write:orders, read:orders-*, admin:*; several times for several.",
)
@click.option("--expires", type=arguments.due, metavar="TIME", help="in 90d, 2027-12-01 0:00 …")
def create(name: str, grants: tuple[Grant, ...], expires: datetime | timedelta | None) -> None:
    """Make a key. Its text is shown this once, on stdout."""
    expires_at = None if expires is None else instant_of(expires)
    _show_once(client().keys.create(name, grants, expires_at=expires_at))


@key.command(name="list")
def list_keys() -> None:
    """List the keys that you could have made."""
    output().rows(client().keys.list(), COLUMNS)


@key.command()
@click.argument("key_id", metavar="KEY-ID")
def get(key_id: str) -> None:
    """Show a key: its grants, its state, the day of its last use."""
    output().value(client().keys.get(key_id))


@key.command()
@click.argument("key_id", metavar="KEY-ID")
@click.option("--overlap", type=arguments.span, metavar="SPAN", help="A day if left out.")
def rotate(key_id: str, overlap: timedelta | None) -> None:
    """Give it another secret, the old one good for a while. Its text is shown this once."""
    _show_once(client().keys.rotate(key_id, overlap=overlap))


@key.command()
@click.argument("key_id", metavar="KEY-ID")
@arguments.yes
def revoke(key_id: str, *, yes: bool) -> None:
    """Revoke a key for good. Asks first."""
    api = client()
    if not yes:
        name = api.keys.get(key_id).name
        keys = many_of(api.keys.list(), "live key", partial(_is_made_by, f"key/{key_id}"))
        running = api.operations.list(state="running")
        operations = many_of(running, "running operation", partial(_is_by, f"key/{key_id}"))
        question = f"{keys} and {operations} of it go on. Revoke the key {name} for good?"
        click.confirm(as_text(question), abort=True, err=True)
    output().done(api.keys.revoke(key_id), f"{key_id} is revoked")
    output().note(f"What it has begun goes on: see duewheel key begun {key_id}")


@key.command()
@click.argument("key_id", metavar="KEY-ID")
def begun(key_id: str) -> None:
    """Show what goes on though the key is revoked: live keys that it made, running operations, and
    timers that it made or changed.

    Of each timer the last ten changes are known. Which tasks it made is in the log alone.
    """
    output().rows(_begun(client(), f"key/{key_id}"), BEGUN_COLUMNS)


@key.command()
@click.argument("key_id", metavar="KEY-ID")
def changes(key_id: str) -> None:
    """Show who made, rotated and revoked it, and when."""
    show_changes(client().keys.changes(key_id))


def _begun(api: Duewheel, caller: str) -> Iterator[dict[str, Any]]:
    for made in api.keys.list():
        if _is_made_by(caller, made):
            yield {"kind": "key", "id": made.key_id, "name": made.name}
    for begun in api.operations.list(state="running"):
        if _is_by(caller, begun):
            of = {"id": begun.operation_id, "biz_type": begun.biz_type}
            yield {"kind": "operation", **of, "name": begun.action}
    for timer in api.timers.list():
        if any(change.by == caller for change in api.timers.changes(timer.timer_id)):
            of = {"id": timer.timer_id, "biz_type": timer.biz_type}
            yield {"kind": "timer", **of, "name": timer.name}


def _is_made_by(caller: str, made: ApiKey) -> bool:
    return made.created_by == caller and made.state == "live"


def _is_by(caller: str, begun: Operation) -> bool:
    return begun.created_by == caller


def _show_once(made: ApiKey) -> None:
    output().done(made, str(made.key))
    if not output().is_json:
        output().note(f"The key {made.key_id}, {made.name}. It is not shown again.")
