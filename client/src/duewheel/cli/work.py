"""`duewheel work`: reports on work that goes on after its callback."""

from datetime import timedelta

import click

from duewheel._sync.work import Work
from duewheel.cli import arguments
from duewheel.cli.framework import Group, client, output
from duewheel.cli.shown import here
from duewheel.values import WorkState

token_option = click.option(
    "--token",
    envvar="DUEWHEEL_COMPLETION_TOKEN",
    required=True,
    help="As the callback had it.",
    show_envvar=True,
)


@click.group(cls=Group)
def work() -> None:
    """Report on work that goes on after its callback, by the completion token."""


@work.command()
@click.argument("task_id", metavar="TASK-ID")
@token_option
@click.option("--result", help="Kept with the task.")
def complete(task_id: str, token: str, result: str | None) -> None:
    """Report that the work is done: the task is delivered."""
    _show(_of(task_id, token).complete(result))


@work.command()
@click.argument("task_id", metavar="TASK-ID")
@token_option
@click.option("--reason")
@click.option("--no-retry", is_flag=True, help="End the task as dead.")
def fail(task_id: str, token: str, reason: str | None, no_retry: bool) -> None:
    """Report that the attempt has failed."""
    _show(_of(task_id, token).fail(reason, retry=not no_retry))


@work.command()
@click.argument("task_id", metavar="TASK-ID")
@token_option
@click.option("--note", help="How far the work is.")
@click.option("--within", type=arguments.span, metavar="SPAN", help="From now.")
def progress(task_id: str, token: str, note: str | None, within: timedelta | None) -> None:
    """Move the deadline."""
    _show(_of(task_id, token).progress(note, within=within))


def _of(task_id: str, token: str) -> Work:
    return client().work(task_id, token)


def _show(state: WorkState) -> None:
    words = [f"{state.task_id} is {state.status}"]
    if state.until:
        words.append(f"to be completed by {here(state.until)}")
    if state.next_at:
        words.append(f"next {here(state.next_at)}")
    output().done(state, ", ".join(words))
