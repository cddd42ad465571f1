"""docs/cli.md: a shell runs its commands in order. They are carried out in this process, to save
the imports of a process for each."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from socketserver import StreamRequestHandler, TCPServer

import click
import pytest

from duewheel.cli.root import duewheel
from tests.cli_support import called, done
from tests.console_support import served

PAGE = Path(__file__).parents[2] / "docs/cli.md"
COMMAND = """
set -eu -o pipefail
port=$1
duewheel() {
  local code word stdin=
  for word in "$@"; do if [ "$word" = - ]; then stdin=$(cat); fi; done
  exec 3<>"/dev/tcp/127.0.0.1/$port"
  printf '%s\\0' $# "$@" "$stdin" >&3
  read -r code <&3
  if [ "$code" = 0 ]; then cat <&3; else cat <&3 >&2; fi
  return "$code"
}
"""
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class Called(StreamRequestHandler):
    """Reads the number of arguments, then each and stdin up to a NUL; answers exit code and
    output."""

    def handle(self) -> None:
        arguments = [self._word() for _ in range(int(self._word()))]
        result = called(*arguments, stdin=self._word())
        output = result.output if result.exit_code else result.stdout
        self.wfile.write(f"{result.exit_code}\n{output}".encode())

    def _word(self) -> str:
        return b"".join(iter(lambda: self.rfile.read(1), b"\0")).decode()


def test_every_block_runs(stack_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = BLOCK.findall(PAGE.read_text())
    assert {language for language, _ in blocks} == {"sh"}
    page = "".join(code for _, code in blocks)
    # Other tests have orders on this stack, and move its clock: tasks that fall due are called.
    page = page.replace("orders", "orders-of-the-page")
    page = page.replace("https://example.com", f"{stack_url}/_local/inbox")
    monkeypatch.setenv("DUEWHEEL_URL", stack_url)
    monkeypatch.chdir(tmp_path)
    with TCPServer(("127.0.0.1", 0), Called) as server, served(server):
        port = str(server.server_address[1])
        ran = subprocess.run(
            ["bash", "-c", COMMAND + page, "bash", port], capture_output=True, text=True
        )
    assert ran.returncode == 0, ran.stderr


def commands(group: click.Group, named: str) -> Iterator[str]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, f"{named} {name}")
        else:
            yield f"{named} {name}"


def test_the_page_names_every_command() -> None:
    page = PAGE.read_text()
    for named in commands(duewheel, "duewheel"):
        assert named in page
        assert done(*named.split()[1:], "--help"), named
