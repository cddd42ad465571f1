"""The command `duewheel` and its groups."""

import click

from duewheel.cli.businesses import business
from duewheel.cli.console.command import console
from duewheel.cli.doctor import doctor
from duewheel.cli.framework import Group, shared_options
from duewheel.cli.keys import key
from duewheel.cli.local import local
from duewheel.cli.operations import operation
from duewheel.cli.overview import overview
from duewheel.cli.tasks import task
from duewheel.cli.timers import timer
from duewheel.cli.wheel import audit, wheel
from duewheel.cli.work import work
from duewheel.version import __version__


class Root(Group):
    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self.params.extend(shared_options(is_hidden=False))


@click.group(cls=Root, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, package_name="duewheel")
def duewheel() -> None:
    """Duewheel, a timer service: tasks, timers and businesses.

    Without any option it talks to the local stack, http://127.0.0.1:8080. Requests to API
    Gateway's own address are signed with your AWS credentials unless there is a key.

    Exit codes: 0 done, 1 refused or failed, 2 usage, 3 not reachable, 4 not permitted,
    5 a dry run has changes.
    """


for command in (
    local,
    console,
    task,
    timer,
    work,
    business,
    operation,
    key,
    overview,
    wheel,
    audit,
    doctor,
):
    duewheel.add_command(command)
