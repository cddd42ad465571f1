"""Kinds of arguments that commands have in common: times, JSON, fields, a task."""

import json
import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar, get_args

import click

from duewheel._sync.client import Duewheel
from duewheel.cli import times
from duewheel.requests import Status, Unset
from duewheel.values import Grant, Task

Read = TypeVar("Read")
STATUSES = get_args(Status)
RIGHTS = ("read", "write", "admin")
FIELD = re.compile(r"([A-Za-z_]+)([=@])(.*)", re.DOTALL)


def due(text: str) -> datetime | timedelta:
    """A due instant. One in the past is refused, since the task would be called at once."""
    now = datetime.now(UTC)
    read = _understood(lambda: times.due(text, now))
    is_past = read < timedelta() if isinstance(read, timedelta) else read < now
    if is_past:
        raise click.BadParameter(f"{text!r} has passed; for at once say now")
    return read


def instant(text: str) -> datetime:
    return _understood(lambda: times.instant(text, datetime.now(UTC)))


def span(text: str) -> timedelta:
    return _understood(lambda: times.span(text))


def _understood(read: Callable[[], Read]) -> Read:
    try:
        return read()
    except times.NotATime as error:
        raise click.BadParameter(str(error)) from None


def json_value(text: str | Unset) -> Any:
    """JSON text, `@FILE` for a file with JSON, or `-` for stdin."""
    if isinstance(text, Unset):
        return text
    try:
        return _parsed(_contents(text))
    except OSError as error:
        raise click.BadParameter(str(error)) from None
    except ValueError as error:
        raise click.BadParameter(f"this is no JSON: {error}") from None


def callback(text: str) -> Any:
    """A URL, or the whole callback as JSON."""
    return text if text.startswith(("http://", "https://")) else json_value(text)


def field(text: str) -> tuple[str, Any]:
    """`NAME=VALUE`: a value that is valid JSON is read as JSON, an empty one is null, and any other
    is text, such as `cron=@daily`. `NAME@FILE`: a file with JSON."""
    found = FIELD.fullmatch(text)
    if found is None:
        raise click.BadParameter(f"{text!r} is neither NAME=VALUE nor NAME@FILE")
    name, sign, value = found.groups()
    if sign == "@":
        return name, json_value(f"@{value}")
    try:
        return name, _parsed(value) if value else None
    except ValueError:
        return name, value


def label(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name or not value:
        raise click.BadParameter(f"{text!r} is not NAME=VALUE")
    return name, value


yes = click.option("--yes", is_flag=True, help="Without counting and asking.")
labels = click.option(
    "--label",
    "labels",
    type=label,
    multiple=True,
    metavar="NAME=VALUE",
    callback=lambda _context, _option, pairs: dict(pairs) or None,
    help="May be repeated.",
)


def task_filter(command: Callable[..., None]) -> Callable[..., None]:
    """The options that select tasks of a business."""
    for option in (
        click.option("--to", "due_to", type=instant, metavar="TIME", help="Due before."),
        click.option("--from", "due_from", type=instant, metavar="TIME", help="Due then or later."),
        labels,
        click.option("--timer", "timer_id", metavar="TIMER", help="Occurrences of this timer."),
        click.option("--flow-key", metavar="KEY", help="With this flow key."),
        click.option("--key-prefix", metavar="PREFIX", help="Whose keys begin so, live or ended."),
        click.option("--status", type=click.Choice(STATUSES)),
    ):
        command = option(command)
    return command


def dead_filter(command: Callable[..., None]) -> Callable[..., None]:
    """The options that select dead tasks."""
    for option in (
        click.option("--last-error", help="A text that its last error contains."),
        click.option("--status-code", type=int, help="Whose last answer had this status."),
        click.option(
            "--reason", help="stopped, attempts exhausted, or older than max_age_seconds."
        ),
        click.option("--until", type=instant, metavar="TIME", help="Dead before."),
        click.option("--since", type=instant, metavar="TIME", help="Dead since."),
    ):
        command = option(command)
    return command


def grant(text: str) -> Grant:
    right, colon, businesses = text.partition(":")
    if not colon or right not in RIGHTS or not businesses:
        raise click.BadParameter(f"{text!r} is not {'|'.join(RIGHTS)}:BUSINESSES")
    return Grant(right=right, businesses=businesses)


def _contents(text: str) -> str:
    if text == "-":
        return sys.stdin.read()
    return Path(text[1:]).read_text() if text.startswith("@") else text


def _parsed(text: str) -> Any:
    return json.loads(text, parse_constant=_refuse)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def fields_of(pairs: tuple[tuple[str, Any], ...], known: frozenset[str]) -> dict[str, Any]:
    """Refuse unknown and repeated names before anything is sent."""
    for name, _ in pairs:
        if name not in known:
            raise click.UsageError(f"There is no {name!r}. There are: {', '.join(sorted(known))}")
    if len(dict(pairs)) < len(pairs):
        raise click.UsageError("A name is given twice")
    return dict(pairs)


def due_arguments(when: datetime | timedelta) -> dict[str, Any]:
    """A span is sent as a delay: the service adds it to its own clock."""
    return {"delay": when} if isinstance(when, timedelta) else {"due_at": when}


def instant_of(when: datetime | timedelta) -> datetime:
    return datetime.now(UTC) + when if isinstance(when, timedelta) else when


def named_task(text: str) -> tuple[str, str] | None:
    """`BUSINESS/KEY`; ids contain no slash."""
    biz_type, stroke, key = text.partition("/")
    return (biz_type, key) if stroke else None


def task_id_of(client: Duewheel, text: str) -> str:
    return found_task(client, text).task_id if named_task(text) else text


def found_task(client: Duewheel, text: str) -> Task:
    named = named_task(text)
    return client.tasks.get_by_key(*named) if named else client.tasks.get(text)
