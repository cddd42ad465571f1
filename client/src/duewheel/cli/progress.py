"""Shows on stderr how far an operation or a list is, until it has ended."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from itertools import islice
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from duewheel._sync.client import Duewheel
from duewheel.cli.framework import output
from duewheel.cli.shown import as_text, here
from duewheel.values import LookedAt, Operation

LOOKED_AT_MAX = 1000
T = TypeVar("T")

_DONE: Mapping[str, str] = {
    "cancel": "cancelled",
    "reschedule": "rescheduled",
    "run": "called now",
    "redrive": "called again",
    "pause": "paused",
    "resume": "resumed",
}


def followed(api: Duewheel, operation_id: str, total: int | None) -> Operation:
    """The ended operation: by a bar on a terminal, by a line after each change otherwise. `total`:
    how many tasks there are, if the caller knows more than the operation."""
    console = Console(stderr=True)
    bar = Progress(
        BarColumn(),
        TextColumn("{task.description}"),
        console=console,
        disable=output().is_json or not console.is_terminal,
    )
    last = ""
    with bar:
        line = bar.add_task("", total=None)
        for found in api.operations.follow(operation_id):
            said = as_text(sentence(found))
            reached = found.changed + found.unchanged + found.refused
            bar.update(line, description=said, completed=reached, total=found.total or total)
            if bar.disable and not output().is_json and not found.has_ended and said != last:
                output().note(said)
            last = said
    return found


@contextmanager
def looking() -> Iterator[Callable[[LookedAt], None]]:
    """Yields what is to be called for each page of a list. One of several pages ends with a note of
    how many records it took."""
    console = Console(stderr=True)
    pages: list[LookedAt] = []
    with console.status("") if console.is_terminal else nullcontext() as status:

        def seen(page: LookedAt) -> None:
            pages.append(page)
            if status is not None:
                at = f", up to {here(page.reached)}" if page.reached else ""
                status.update(f"{_records(pages):,} looked at{at}")

        yield seen
    if len(pages) > 1 and not output().is_json:
        output().note(f"{_records(pages):,} tasks were looked at.")


def _records(pages: list[LookedAt]) -> int:
    return sum(page.records for page in pages)


def many_of(found: Iterable[T], what: str, is_meant: Callable[[T], bool] = lambda _: True) -> str:
    """How many are meant of the first thousand, which take ten requests."""
    some = list(islice(found, LOOKED_AT_MAX))
    least = "at least " if len(some) == LOOKED_AT_MAX else ""
    return least + _many(sum(map(is_meant, some)), what)


def many_tasks(count: int) -> str:
    return _many(count, "task")


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def sentence(found: Operation) -> str:
    """What an operation has come to."""
    would = "would be " if found.dry_run else ""
    words = [f"{many_tasks(found.changed)} {would}{_DONE.get(found.action, 'changed')}"]
    if found.unchanged:
        words.append(f"{found.unchanged:,} were so already")
    if found.refused:
        words.append(f"{found.refused:,} refused")
    text = ", ".join(words)
    if found.state in ("stopped", "failed"):
        text = f"{found.state.capitalize()}: {text}"
    return f"{text}. {found.last_problem}" if found.last_problem else text
