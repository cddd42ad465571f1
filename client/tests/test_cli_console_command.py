"""`duewheel console` as a process: its output, the browser, and its end."""

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.cli_support import called
from tests.console_support import Upstream
from tests.support import Script, gateway, problem

CLIENT = Path(__file__).parents[1]
BROWSER = """#!/bin/sh
echo "$1"
exec cat
"""


def _enable_ctrl_c() -> None:
    """Restore the handling of Ctrl-C, which a shell disables for processes in its background."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def started(*arguments: str, **environment: str) -> Iterator["subprocess.Popen[str]"]:
    """The command as a process, which is ended also when the test fails."""
    process = subprocess.Popen(
        [sys.executable, "-m", "duewheel.cli", "console", *arguments],
        env={**os.environ, "PYTHONPATH": str(CLIENT / "src"), **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=_enable_ctrl_c,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@contextmanager
def entered(address: str) -> Iterator[httpx.Client]:
    with httpx.Client(headers={"sec-fetch-site": "same-origin"}) as browser:
        assert browser.get(address).status_code == 200
        yield browser


@pytest.mark.parametrize(
    "ending", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.exhaustive)]
)
def test_console_prints_an_address_and_ends_without_a_message(
    service: Upstream, ending: int
) -> None:
    options = ["--no-browser", "--url", service.url]
    with started(*options, DUEWHEEL_KEY="dw_of_the_caller") as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        with entered(address) as browser:
            assert browser.get(httpx.URL(address).join("/v1/wheel")).json()["status"] == "ok"
            os.killpg(process.pid, ending)  # while a connection is kept alive
            stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout) == (0, "")
    assert f"The console of {service.url}, with an API key." in stderr
    assert "Traceback" not in stderr
    assert "token" not in stderr
    assert service.received[0].url.path == "/v1/health"
    assert service.received[-1].headers["authorization"] == "Bearer dw_of_the_caller"


def test_the_browser_is_opened_without_the_token_on_its_command_line(
    service: Upstream, tmp_path: Path
) -> None:
    """Other users of the machine can read the command line. The command does not wait for the
    browser to end."""
    browser = tmp_path / "browser"
    browser.write_text(BROWSER)
    browser.chmod(0o700)
    with started("--url", service.url, "--json", BROWSER=f"{browser} %s") as process:
        assert process.stdout is not None
        lines = sorted(process.stdout.readline().strip() for _ in range(2))  # in either order
        asked, address = lines[0], json.loads(lines[1])["url"]
        page = Path(asked.removeprefix("file://"))
        with entered(address):
            assert "token" not in asked
            assert f'content="0; url={address}"' in page.read_text()
            assert stat.S_IMODE(page.parent.stat().st_mode) == 0o700
            os.kill(process.pid, signal.SIGINT)
            _, stderr = process.communicate(timeout=60)
    assert (process.returncode, page.parent.exists()) == (0, False), stderr


def test_an_occupied_port_is_a_failure(service: Upstream) -> None:
    taken = service.url.rpartition(":")[2]
    result = called("console", "--no-browser", "--port", taken, "--url", service.url)
    assert (result.exit_code, "Address already in use" in result.stderr) == (1, True)
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("answer", "code", "expected"),
    [
        (httpx.ConnectError("refused"), 3, "cannot be reached"),
        (gateway(401), 4, "carries no key or signature"),
        (gateway(403), 4, "does not hold here"),
        (gateway(404), 1, "leads to no call"),
        (problem("unavailable", 503), 1, "unavailable"),
        (httpx.Response(200, text="another site"), 1, "no JSON"),
    ],
)
def test_no_browser_is_opened_if_the_service_does_not_answer_as_expected(
    answer: httpx.Response | Exception, code: int, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webbrowser.open", None)
    script = Script(answer)
    result = called("console", script=script)
    assert (result.exit_code, result.stdout) == (code, "")
    assert expected in result.stderr
    assert len(script.requests) == 1


def test_no_browser_is_opened_without_credentials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", f"{tmp_path}/none")
    monkeypatch.setenv("AWS_CONFIG_FILE", f"{tmp_path}/none")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setattr("webbrowser.open", None)
    script = Script(gateway(500))
    url = "https://abc123.execute-api.eu-central-1.amazonaws.com"
    result = called("console", "--url", url, script=script)
    assert (result.exit_code, "no AWS credentials" in result.stderr) == (2, True)
    assert (result.stdout, script.requests) == ("", [])
