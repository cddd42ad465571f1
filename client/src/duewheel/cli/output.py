"""The output of commands: tables for people, one line of JSON for each value for programs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from duewheel.cli.shown import as_json, as_text, members

PIPE_COLUMNS = 10_000  # so that output to a pipe is neither cut nor folded


@dataclass
class Output:
    is_json: bool = False

    def value(self, value: Any, *left_out: str) -> None:
        """Print one value, one member a line, without empty members."""
        if self.is_json:
            click.echo(as_json(value))
            return
        table = Table.grid(padding=(0, 2))
        for name, member in members(value).items():
            if member not in (None, (), {}, []) and name not in left_out:
                table.add_row(Text(name, style="bold"), Text(as_text(member)))
        _console().print(table)

    def rows(self, values: Iterable[Any], columns: Sequence[str]) -> None:
        """Print values of one kind; for programs each is printed as it arrives."""
        if self.is_json:
            for value in values:
                click.echo(as_json(value))
            return
        table = Table(box=None, pad_edge=False, header_style="bold")
        for name in columns:
            table.add_column(name.replace("_", " "), overflow="fold")
        for value in values:
            member = value if isinstance(value, dict) else members(value)
            table.add_row(*(Text(as_text(member.get(name))) for name in columns))
        if table.row_count:
            _console().print(table)
        else:
            self.note("There is nothing to show.")

    def first(self, values: Iterable[Any], columns: Sequence[str], limit: int) -> None:
        """Print the first `limit` values, and a note if there are more."""
        found = iter(values)
        self.rows(islice(found, limit), columns)
        if next(found, None) is not None:
            self.note(f"There are more than these {limit:,}: see --limit.")

    def done(self, value: Any, sentence: str) -> None:
        """Print the change of a command: a sentence for people, the value for programs."""
        click.echo(as_json(value) if self.is_json else as_text(sentence))

    def note(self, sentence: str) -> None:
        """Print a remark on stderr, so that no program reads it."""
        click.echo(as_text(sentence), err=True)


def _console() -> Console:
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=PIPE_COLUMNS)
