"""The command line, called in this process."""

import json
from typing import Any

from click.testing import CliRunner, Result

from duewheel.cli.connection import Connection
from duewheel.cli.framework import Setting
from duewheel.cli.root import duewheel
from tests.support import Script, plain_http


def called(*arguments: str, script: Script | None = None, stdin: str | None = None) -> Result:
    """Run a command against a scripted service, or against the one that the environment names."""
    transport = plain_http() if script is None else script.transport
    setting = Setting(Connection(transport=transport))
    return CliRunner().invoke(duewheel, arguments, obj=setting, input=stdin)


def done(*arguments: str, **given: Any) -> str:
    result = called(*arguments, **given)
    assert result.exit_code == 0, result.output
    return result.stdout


def values(*arguments: str, **given: Any) -> list[Any]:
    return [json.loads(line) for line in done(*arguments, "--json", **given).splitlines()]


def value(*arguments: str, **given: Any) -> Any:
    (only,) = values(*arguments, **given)
    return only
