"""What `make fresh` takes from README.md, hands on, and believes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from infra import fresh_machine
from infra.fresh_machine import Failed

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
    assert found == {"python3", *fresh_machine.PROGRAMS, *fresh_machine.COREUTILS}
    asked = [f"{given['PATH']}/python3", "-c", "import sys; print(*sys.version_info[:2])"]
    said = subprocess.run(asked, env=given, check=True, capture_output=True, text=True).stdout
    assert said.split() == [str(part) for part in sys.version_info[:2]]


def test_behind_the_walls_only_the_folder_can_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    walled = fresh_machine.walls(tmp_path / "inside")
    if not walled:
        pytest.skip("this system makes no private mounts")
    write = 'echo x > "$1/inside/y"; echo x > "$1/y"'
    done = subprocess.run(
        [*walled, "sh", "-c", write, "sh", tmp_path], check=False, capture_output=True, text=True
    )
    assert "Read-only" in done.stderr
    assert (tmp_path / "inside" / "y").exists()
    assert not (tmp_path / "y").exists()


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
