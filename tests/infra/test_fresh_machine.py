"""What `make fresh` takes from README.md, hands on, and believes."""

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from infra.release import fresh_machine
from infra.release.fresh_machine import Failed

README = (fresh_machine.ROOT / "README.md").read_text("utf-8")


def test_it_runs_what_the_readme_says() -> None:
    commands, beside = fresh_machine.try_it(README)
    assert commands == ["make local", "make test"]
    assert f"url={fresh_machine.README_URL}\n" in beside
    assert beside.count("curl ") == 2


def test_it_hands_on_the_ways_to_servers_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handed_on = {"PIP_INDEX_URL", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "https_proxy", "NO_PROXY"}
    for name in (*handed_on, "AWS_PROFILE", "PYTHONPATH", "VIRTUAL_ENV", "NOT_PIP_X"):
        monkeypatch.setenv(name, "x")
    given = fresh_machine.environment(tmp_path)
    assert {name for name, text in given.items() if text == "x"} == handed_on
    assert Path(given["HOME"]).parent == Path(given["TMPDIR"]).parent == tmp_path
    assert not list(Path(given["HOME"]).iterdir())
    found = {path.name for path in Path(given["PATH"]).iterdir()}
    assert found == {"python3", *fresh_machine.PROGRAMS, *fresh_machine.OF_UNIX}
    asked = [f"{given['PATH']}/python3", "-c", "import sys; print(*sys.version_info[:2])"]
    said = subprocess.run(asked, env=given, check=True, capture_output=True, text=True).stdout
    assert said.split() == [str(part) for part in sys.version_info[:2]]


def test_behind_the_walls_only_the_folder_can_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    walled = fresh_machine.walls(tmp_path / "inside")  # fails where WALLS asks for them
    if not walled:
        pytest.skip("this system makes no private mounts")
    write = 'echo x > "$1/inside/y"; echo x > "$1/y"'
    done = subprocess.run(
        [*walled, "sh", "-c", write, "sh", tmp_path], check=False, capture_output=True, text=True
    )
    assert "Read-only" in done.stderr
    assert (tmp_path / "inside" / "y").exists()
    assert not (tmp_path / "y").exists()


def test_walls_that_are_asked_for_and_cannot_be_had_are_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbidden = tmp_path / "unshare"
    forbidden.write_text("#!/bin/sh\necho unshare: Operation not permitted >&2; exit 1\n")
    forbidden.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("WALLS", raising=False)
    assert fresh_machine.walls(tmp_path) == []
    monkeypatch.setenv("WALLS", "1")
    with pytest.raises(Failed, match="read-only: unshare: Operation not permitted"):
        fresh_machine.walls(tmp_path)
    forbidden.unlink()
    with pytest.raises(Failed, match="no unshare"):
        fresh_machine.walls(tmp_path)


CREATED = '{"task_id": "x"}'


def received(*bodies: str) -> str:
    return CREATED + json.dumps({"requests": [{"body": body} for body in bodies]}).replace(
        '{"requests": ', '{"requests":'
    )


def test_it_believes_a_call_that_it_sees() -> None:
    fresh_machine.see_a_call(received('{"order": 17}'))
    for seen in ((), ('{"order": 18}',), ('{"order": 17}', '{"order": 17}')):
        with pytest.raises(Failed, match="the inbox got"):
            fresh_machine.see_a_call(received(*seen))
    with pytest.raises(Failed, match="did not answer"):
        fresh_machine.see_a_call(CREATED)


@pytest.fixture
def somebody_elses() -> Iterator[str]:
    """A stack that was there before, and answers as the clone's own would."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(received('{"order": 17}').removeprefix(CREATED).encode())

        def log_message(self, format: str, *args: object) -> None:
            """Nothing on the tests' output."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_port_that_somebody_holds_is_refused_before_anything_is_made(
    somebody_elses: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PORT", somebody_elses.rpartition(":")[2])
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(fresh_machine, "work", lambda folder, quick: None)
    assert fresh_machine.main() == 1
    assert f"somebody is at {somebody_elses} already" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_free_port_is_not_refused() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        fresh_machine.refuse_somebody_elses(f"http://127.0.0.1:{free.getsockname()[1]}")


def test_an_answer_is_not_believed_when_what_was_started_has_ended(
    somebody_elses: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody came to the port after the beginning, and the clone's stack ended for it."""
    monkeypatch.setenv("PORT", somebody_elses.rpartition(":")[2])
    monkeypatch.setattr(fresh_machine, "wait_until_up", lambda url, local: local.wait())
    beside = f"curl -s {fresh_machine.README_URL}/_local/received/orders"
    with pytest.raises(Failed, match="ended with 0: somebody else has answered"):
        fresh_machine.local_stack(["true"], beside, tmp_path, dict(os.environ))
