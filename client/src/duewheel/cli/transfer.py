"""`duewheel import` and `duewheel export`: tasks from a file, and into one."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

from duewheel.cli import arguments
from duewheel.cli.exporting import as_new
from duewheel.cli.failures import Failed
from duewheel.cli.framework import Command, client, output
from duewheel.cli.importing import Import, look_through
from duewheel.cli.journal import Journal
from duewheel.cli.shown import as_json

REFUSED_SHOWN = 20


@click.command(name="import", cls=Command)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--in-doubt",
    type=click.Choice(["send", "skip"]),
    help="What to do with a request whose outcome is unknown for a day.",
)
def import_tasks(file: Path, in_doubt: str | None) -> None:
    """Create the tasks of FILE, a line of JSON each, in batches.

    The same command continues an import that ended early; FILE.import records the progress.
    """
    journal = Journal(file.with_name(file.name + ".import"))
    lines = look_through(file, journal)
    api = client()
    _into_the_same(journal, api.url)
    _decide(journal, in_doubt)
    bar = Progress(
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        disable=output().is_json or not Console(stderr=True).is_terminal,
    )
    with bar:
        shown = bar.add_task("", total=lines)
        Import(file, journal, api).run(lambda line: bar.update(shown, completed=line))
    _report(journal)


def _into_the_same(journal: Journal, url: str) -> None:
    if journal.url is None:
        journal.begin(url)
    elif journal.url != url:
        raise Failed(f"This was an import into {journal.url}; for another remove {journal.path}")


def _decide(journal: Journal, in_doubt: str | None) -> None:
    """The service no longer has the idempotency key of such a request, so a repeat could make
    second tasks."""
    last = journal.last
    if last is None or not journal.is_in_doubt or last.is_remembered(datetime.now(UTC)):
        return
    if in_doubt is None:
        raise Failed(
            f"Lines {last.lines[0]} to {last.lines[-1]} were sent at {last.at}, and it is not "
            "known whether their tasks were made. Look for some of them; then say --in-doubt send "
            "if they are missing, or --in-doubt skip if they are there"
        )
    if in_doubt == "skip":
        journal.answered(0, [], [])


def _report(journal: Journal) -> None:
    sentence = f"{journal.made:,} tasks made, {len(journal.refused):,} refused"
    output().done({"made": journal.made, "refused": journal.refused}, sentence)
    if not journal.refused:
        return
    if not output().is_json:
        output().rows(journal.refused[:REFUSED_SHOWN], ("line", "said"))
        output().note(f"All refused lines are in {journal.path}")
    click.get_current_context().exit(1)


@click.command(name="export", cls=Command)
@click.argument("business")
@click.option(
    "--from", "due_from", type=arguments.instant, metavar="TIME", help="Due then or later."
)
@click.option("--to", "due_to", type=arguments.instant, metavar="TIME", help="Due before.")
def export(business: str, **due: Any) -> None:
    """Print a business's pending tasks as `duewheel import` takes them.

    Occurrences of timers, and notices of dead tasks, are left out: the service makes them.
    """
    for task in client().tasks.list(business, status="pending", **due):
        if task.timer_id is None and task.notice_of is None:
            click.echo(as_json(as_new(task)))
