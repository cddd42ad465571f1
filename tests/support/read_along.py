"""Runs all blocks of a page from top to bottom, like a reader who copies them into a shell.

- The stack is started by the command of the page: `make local` with settings.
- `sh`: one bash runs all blocks of the page, and ends at the first command that fails.
- `python`: a block that begins with `# name.py` is that file; any other is a separate program.
- `typescript`: a block begins with `// name.mts`, and is that file.
- `http`: a request, which is sent unchanged, and must be answered with 2xx.
- `json` and `text`: the output of the block right before, in the same section.
- `sleep` moves the stack's clock, so that no test waits, or depends on the speed of the machine.
"""

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

from tests.support.likeness import Likeness
from tests.support.page_blocks import ROOT, Block, fenced, indented
from tests.support.stack_process import clean_environment, local_stack

RUN = ("sh", "python", "http", "typescript")
OUTPUT = ("json", "text")

_ADDRESS = "127.0.0.1:8080"
_RECEIVER_PORT = "9000"
# The local stack has only functions that record their events.
_FUNCTION = '"function": "', '"function": "inbox-'
_CLOCK = 'curl -sSf -o /dev/null "$DUEWHEEL_URL/_local/clock" -d'
_SLEEP = f"""{_CLOCK} '{{"advance_seconds": '$1'}}' && {_CLOCK} '{{"freeze": false}}'"""
_START = re.compile(r"^make local\b(.*?)(?:#.*)?$", re.MULTILINE)
_FILE = re.compile(r"(?:#|//) (\w+\.(?:py|mts))\n")
_REQUEST = re.compile(r"([A-Z]+) (/\S+) HTTP/1\.1\n\n?(.*)", re.DOTALL)
_TIMEOUT_SECONDS = 900


def follow(text: str, folder: Path) -> list[str]:
    """The differences from the page; empty if there are none."""
    blocks, settings = fenced(text), _settings(text)
    with local_stack(settings) as url:
        places = {_ADDRESS: url.removeprefix("http://"), _RECEIVER_PORT: _free_port()}
        failed, printed = _Shell(folder, url, places).run(blocks)
    likeness = Likeness(with_instants="FROZEN_AT" in settings)
    differing = [] if failed is None else [failed]
    for before, block in pairwise(blocks):
        if not is_output(before, block) or before.line not in printed:
            continue
        alike = likeness.of_json if block.language == "json" else likeness.of_text
        if not alike(block.text, printed[before.line]):
            differing.append(f"line {block.line}: came\n{printed[before.line]}")
    return differing


def is_output(before: Block, block: Block) -> bool:
    return block.language in OUTPUT and before.language in RUN and before.section == block.section


def _settings(text: str) -> dict[str, str]:
    started = [found for block in indented(text) for found in _START.findall(block)]
    given = [word.split("=", 1) for word in shlex.split(started[0])] if started else []
    return dict(given)


def _free_port() -> str:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return str(held.getsockname()[1])


def _with(text: str, places: Mapping[str, str]) -> str:
    for place, instead in places.items():
        text = re.sub(rf"\b{re.escape(place)}\b", instead, text)
    return text


class _Shell:
    def __init__(self, folder: Path, url: str, places: dict[str, str]) -> None:
        self._folder, self._url, self._places = folder, url, places

    def run(self, blocks: list[Block]) -> tuple[str | None, dict[int, str]]:
        """The failure, if any, and the output of each block by its line."""
        script = "set -euo pipefail\n" + "".join(
            f"exec >printed-{block.line}; echo '# line {block.line}' >&2\n{self._command(block)}\n"
            for block in blocks
            if block.language in RUN
        )
        errors = self._folder / "errors"
        with errors.open("w") as stderr:
            process = subprocess.Popen(
                ["bash", "-c", script],
                cwd=self._folder,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stderr=stderr,
                start_new_session=True,
            )
        try:
            status = process.wait(_TIMEOUT_SECONDS)
        finally:
            with suppress(ProcessLookupError):  # no process was left
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        shown = {real: place for place, real in self._places.items()}
        printed = {
            block.line: _with(path.read_text(), shown)
            for block in blocks
            if (path := self._folder / f"printed-{block.line}").exists()
        }
        return (f"exit {status}\n{errors.read_text()}\n{printed}" if status else None), printed

    def _command(self, block: Block) -> str:
        code = _with(block.text, self._places)
        if block.language == "sh":
            return code
        if block.language == "http":
            return self._request(code.replace(*_FUNCTION))
        named = _FILE.match(code)
        path = self._folder / (named[1] if named else f"block-{block.line}.py")
        path.write_text(code)
        return ":" if named else f"python3 {path.name}"

    def _request(self, text: str) -> str:
        asked = _REQUEST.fullmatch(text)
        assert asked, f"no request: {text}"
        method, path, body = asked.groups()
        url, body = shlex.quote(self._url + path), shlex.quote(body)
        return f"curl -sS --fail-with-body -X {method} {url} --data {body}"

    def _environment(self) -> dict[str, str]:
        tools = self._folder / "bin"
        tools.mkdir()
        for name, command in (
            ("python3", f'exec "{sys.executable}" "$@"'),
            ("duewheel", f'exec "{sys.executable}" -m duewheel.cli "$@"'),
            ("sleep", _SLEEP),
        ):
            tool = tools / name
            tool.write_text(f"#!/bin/sh\n{command}\n")
            tool.chmod(0o755)
        return {
            **clean_environment(),
            "PATH": f"{tools}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT / "client/src"),
            "DUEWHEEL_URL": self._url,
            "TZ": "UTC",
        }
