"""docs/cli.md: its commands are run by a shell, one after the other, as processes of their own."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from duewheel.cli.root import duewheel
from tests.cli_support import done

CLIENT = Path(__file__).parents[1]
PAGE = CLIENT.parent / "docs/cli.md"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def test_every_block_runs(stack_url: str, tmp_path: Path) -> None:
    command = tmp_path / "bin/duewheel"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m duewheel.cli "$@"\n')
    command.chmod(0o755)
    blocks = BLOCK.findall(PAGE.read_text())
    assert {language for language, _ in blocks} == {"sh"}
    environment = {
        **os.environ,
        "PATH": f"{command.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(CLIENT / "src"),
        "DUEWHEEL_URL": stack_url,
    }
    script = "set -eu -o pipefail\n" + "".join(code for _, code in blocks)
    script = script.replace("orders", "orders-of-the-page")  # others have some on this stack
    ran = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr


def commands(group: click.Group, named: str) -> Iterator[str]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, f"{named} {name}")
        else:
            yield f"{named} {name}"


@pytest.mark.parametrize("named", list(commands(duewheel, "duewheel")))
def test_the_page_names_every_command(named: str) -> None:
    assert named in PAGE.read_text()
    assert done(*named.split()[1:], "--help")
