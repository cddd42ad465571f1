"""The features of every command: the connection's options, `--json`, and exit codes.

The options are allowed before and after the command: `duewheel --json task list orders` is
`duewheel task list orders --json`.
"""

from dataclasses import dataclass, field
from typing import Any

import click

from duewheel._sync.client import Duewheel
from duewheel.cli.connection import Connection
from duewheel.cli.failures import reported
from duewheel.cli.output import Output


@dataclass
class Setting:
    """The values of the shared options."""

    connection: Connection = field(default_factory=Connection)
    output: Output = field(default_factory=Output)


class Command(click.Command):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.extend(shared_options(is_hidden=True))

    def invoke(self, context: click.Context) -> Any:
        with reported():
            return super().invoke(context)


class Group(click.Group):
    command_class = Command
    group_class = type


def shared_options(*, is_hidden: bool) -> list[click.Option]:
    """The options that the help of `duewheel` shows, and that each command accepts."""
    texts = {
        "url": "Address of the service, the stack's output ApiUrl  [DUEWHEEL_URL]",
        "key": "API key; better in the environment, where others do not see it  [DUEWHEEL_KEY]",
        "profile": "AWS profile whose credentials sign the requests  [DUEWHEEL_PROFILE]",
        "stack": "CloudFormation stack whose output is the address  [DUEWHEEL_STACK]",
    }
    options = [
        click.Option(
            [f"--{name}"], help=text, hidden=is_hidden, expose_value=False, callback=_connects
        )
        for name, text in texts.items()
    ]
    text = "A line of JSON for each value, for programs."
    as_json = click.Option(
        ["--json"], is_flag=True, help=text, expose_value=False, callback=_prints_json
    )
    return [*options, as_json]


def _connects(context: click.Context, option: click.Parameter, value: str | None) -> None:
    if value is not None:
        assert option.name is not None
        setattr(context.ensure_object(Setting).connection, option.name, value)


def _prints_json(context: click.Context, option: click.Parameter, value: bool) -> None:
    if value:
        context.ensure_object(Setting).output.is_json = True


def client() -> Duewheel:
    """Closed when the command ends."""
    context = click.get_current_context()
    made: Duewheel = context.with_resource(context.ensure_object(Setting).connection.client())
    return made


def connection() -> Connection:
    return click.get_current_context().ensure_object(Setting).connection


def output() -> Output:
    return click.get_current_context().ensure_object(Setting).output
