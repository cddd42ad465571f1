"""`make fresh`, on a repository with this one's README.md and a stack of a few lines."""

import os
import signal
import socket
import subprocess
from pathlib import Path
from shutil import copy2

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8").replace("sleep 4", "sleep 0")
MAKEFILE = """
local:
	@env; ls -A $$HOME; exec python3 stack.py $(PORT)
test:
	@: && echo tested
"""
STACK = r"""
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

class Answers(BaseHTTPRequestHandler):
    def do_GET(self, answer=rb'{"requests":[{"body":"{\"order\": 17}"}]}'):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(answer)

    def do_POST(self):
        self.do_GET(b'{"task_id":"x"}')

try:
    HTTPServer(("127.0.0.1", int(sys.argv[1])), Answers).serve_forever()
except KeyboardInterrupt:
    print("ended by Ctrl-C")
"""


class Repository:
    def __init__(self, folder: Path) -> None:
        self.root, self.temporary = folder / "repository", folder / "tmp"
        self.temporary.mkdir()
        (self.root / "infra/release").mkdir(parents=True)
        copy2(ROOT / "infra/release/fresh-machine", self.root / "infra/release")
        self.files = {"README.md": README, "Makefile": MAKEFILE, "stack.py": STACK}
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]

    def change(self, name: str, old: str, new: str) -> None:
        assert old in self.files[name]
        self.files[name] = self.files[name].replace(old, new)

    def fresh(self, **environment: str) -> subprocess.CompletedProcess[str]:
        for name, text in self.files.items():
            (self.root / name).write_text(text, "utf-8")
        someone = ["-c", "user.name=someone", "-c", "user.email=someone"]
        for command in (["init", "-q"], ["add", "-A"], [*someone, "commit", "-qm", "Begin"]):
            subprocess.run(["git", *command], cwd=self.root, check=True)
        env = {**os.environ, "PORT": str(self.port), "TMPDIR": str(self.temporary), **environment}
        script = self.root / "infra/release/fresh-machine"
        return subprocess.run(
            [script],
            env=env,
            check=False,
            capture_output=True,
            text=True,
            # SIGINT is ignored in the background of a shell, and a shell cannot undo that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    monkeypatch.delenv("QUICK", raising=False)
    return Repository(tmp_path)


def test_the_commands_of_the_readme_are_run_and_leave_no_files(repository: Repository) -> None:
    done = repository.fresh()
    assert done.returncode == 0, done.stderr
    assert "ended by Ctrl-C\ntested\nas README.md says\n" in done.stdout
    assert not list(repository.temporary.iterdir())


@pytest.mark.stack
def test_only_variables_for_proxies_and_certificates_are_passed_on(repository: Repository) -> None:
    handed_on = {"PIP_INDEX_URL", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "no_proxy", "NO_PROXY"}
    others = {"AWS_PROFILE", "PYTHONPATH", "VIRTUAL_ENV", "NOT_PIP_X"}
    done = repository.fresh(QUICK="1", **dict.fromkeys(handed_on | others, "127.0.0.1"))
    variables = [line.partition("=") for line in done.stdout.splitlines()]
    assert {name for name, _, text in variables if text == "127.0.0.1"} == handed_on
    given = {name: text for name, _, text in variables}
    home, path = Path(given["HOME"]), Path(given["PATH"])
    assert home.parent == path.parent == Path(given["TMPDIR"]).parent
    assert home.parent.parent == repository.temporary
    assert "as README.md says, tests left out\n" in done.stdout
    assert "tested" not in done.stdout


@pytest.mark.stack
def test_a_fresh_machine_can_itself_make_a_fresh_machine(repository: Repository) -> None:
    """`make test` runs these tests on the fresh machine."""
    again = f"QUICK=1 PORT={repository.port} infra/release/fresh-machine"
    repository.change("Makefile", "echo tested", again)
    done = repository.fresh()
    assert done.returncode == 0, done.stderr
    assert "as README.md says, tests left out\nas README.md says\n" in done.stdout


@pytest.mark.stack
@pytest.mark.parametrize(
    ("name", "old", "new", "reason"),
    [
        ("README.md", "    make test ", "    make all ", "it names other commands"),
        ("README.md", "sleep 0", "false", "its shell commands failed"),
        ("stack.py", '{\\"order\\": 17}', '{\\"order\\": 18}', "the inbox got"),
        ("stack.py", '{"body":"{\\"order\\": 17}"}', "", "the inbox got"),
        ("stack.py", '"}]', '"},{"body":"{\\"order\\": 17}"}]', "the inbox got"),
        ("Makefile", "exec python3", "exec false", "make local ended"),
        ("Makefile", ": && echo tested", "false", "make test failed"),
        ("Makefile", ": && echo tested", "touch made", "what is made is not"),
        ("Makefile", "exec python3", "exec which python3", "make local ended"),
    ],
)
def test_each_difference_from_the_readme_fails(
    repository: Repository, name: str, old: str, new: str, reason: str
) -> None:
    repository.change(name, old, new)
    done = repository.fresh()
    assert done.returncode == 1
    assert f"not as README.md says: {reason}" in done.stderr
    assert list(repository.temporary.iterdir()), "kept for inspection"


@pytest.mark.stack
def test_an_answer_after_the_end_of_make_local_is_a_failure(repository: Repository) -> None:
    started = "python3 stack.py $(PORT)"
    until_asked = f"echo $$PPID > pid; {started} & until [ -e asked ]; do sleep 0.1; done"
    repository.change("Makefile", f"exec {started}", until_asked)
    has_ended = "touch asked; while kill -0 $(cat pid) 2>/dev/null; do sleep 0.1; done; sleep 0.2"
    repository.change("README.md", "sleep 0", has_ended)
    done = repository.fresh()
    assert done.returncode == 1
    assert "make local ended, and another process answered" in done.stderr


def test_a_port_that_another_process_holds_is_refused_before_anything_is_made(
    repository: Repository,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = repository.fresh(PORT=str(port))
    assert done.returncode == 1
    assert f"another process answers at http://127.0.0.1:{port}" in done.stderr
    assert not list(repository.temporary.iterdir())
