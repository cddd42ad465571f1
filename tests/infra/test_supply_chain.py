"""What others wrote and this service runs on: pinned to its bytes, listed, looked up."""

import json
import re
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from infra.release import advisories, licences, sbom
from infra.release.pinned import DEPLOYED, TOOLS, deployed, pinned_in, tools

ROOT = Path(__file__).parents[2]
RECIPES = ("Makefile", "infra/build.mk", "layers/vendor/Makefile")


# ---------------------------------------------------------------- hashes


def test_every_file_of_requirements_pins_every_package_to_its_hashes() -> None:
    here = {f"requirements/{path.name}" for path in (ROOT / "requirements").glob("*.txt")}
    assert here == set(TOOLS)
    for path in (DEPLOYED, *TOOLS):
        assert pinned_in(path)


@pytest.mark.parametrize("line", ["six==1.17.0", "six", "six>=1 --hash=sha256:" + "0" * 64])
def test_a_line_that_does_not_pin_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, line: str
) -> None:
    monkeypatch.setattr("infra.release.pinned.ROOT", tmp_path)
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements/dev.txt").write_text(line)
    with pytest.raises(ValueError, match="does not pin"):
        pinned_in("requirements/dev.txt")


def test_nothing_is_installed_without_its_hash() -> None:
    recipes = [(ROOT / name).read_text("utf-8").replace("\\\n", " ") for name in RECIPES]
    commands = [
        line
        for text in recipes
        for line in text.splitlines()
        if " pip install " in line and "#" not in line
    ]
    assert len(commands) == 3, "uv's and pip's, and the one of what is deployed"
    assert all("--require-hashes" in line or "$(PINNED)" in line for line in commands)
    assert re.search(r"^PINNED = .*--require-hashes", recipes[0], re.MULTILINE)


def test_what_is_deployed_is_installed_from_wheels_alone() -> None:
    """A source distribution would run code of its own where the package is built."""
    text = (ROOT / "layers/vendor/Makefile").read_text("utf-8")
    assert "--only-binary=:all:" in text


def test_what_is_tested_is_what_is_deployed() -> None:
    in_both = {one.name: one.version for one in pinned_in("requirements/dev.txt")}
    for one in deployed():
        assert one.version == in_both[one.name] == version(one.name)


# ---------------------------------------------------------------- licences


@pytest.mark.parametrize("said", ["GPL-3.0-only", "AGPL-3.0-or-later", "Proprietary", "UNKNOWN"])
def test_a_licence_that_nobody_has_looked_at_is_an_error(
    monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    monkeypatch.setattr(licences, "metadata", lambda _: Metadata({"License-Expression": said}))
    with pytest.raises(licences.UnknownLicence, match=said):
        licences.licence_of("httptools")


def test_what_is_deployed_may_have_no_licence_that_only_tools_may(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(licences, "metadata", lambda _: Metadata({"License": "MPL-2.0"}))
    assert licences.licence_of("hypothesis") == "MPL-2.0"
    with pytest.raises(licences.UnknownLicence):
        licences.licence_of("httptools", licences.PERMISSIVE)


class Metadata(dict[str, str]):
    def get_all(self, name: str) -> list[str]:
        return [self[name]] if name in self else []


# ---------------------------------------------------------------- bill of materials


def test_the_bill_names_all_that_is_deployed_with_version_licence_and_hashes() -> None:
    bill = sbom.of_deployed()
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    listed = {part["purl"]: part for part in bill["components"]}
    assert set(listed) == {one.purl for one in deployed()}
    for one in deployed():
        hashes = {said["value"] for said in listed[one.purl]["properties"]}
        assert hashes == set(one.sha256)
        assert listed[one.purl]["licenses"][0]["expression"] in licences.PERMISSIVE


def test_the_bill_says_who_needs_whom_and_nobody_is_there_for_nothing() -> None:
    bill = sbom.of_deployed()
    needs = {said["ref"]: said["dependsOn"] for said in bill["dependencies"]}
    refs = {part["bom-ref"] for part in bill["components"]}
    reached, ahead = set(), [bill["metadata"]["component"]["bom-ref"]]
    while ahead:
        reached |= set(ahead)
        ahead = [ref for one in ahead for ref in needs[one] if ref not in reached]
    assert reached - {sbom.SERVICE} == refs


def test_the_bill_of_the_tools_has_the_rest() -> None:
    listed = {part["purl"] for part in sbom.of_tools()["components"]}
    assert listed == {one.purl for one in tools()}
    assert not listed & {one.purl for one in deployed()}
    assert any(re.match("pkg:pypi/aws-sam-cli@", purl) for purl in listed)


# ---------------------------------------------------------------- advisories

Answer = Callable[[list[str]], tuple[int, Any]]


class Osv(ThreadingHTTPServer):
    """Answers a batch of package URLs as it is told."""

    answer: Answer

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Osv

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        purls = [query["package"]["purl"] for query in asked["queries"]]
        status, body = self.server.answer(purls)
        self.send_response(status if self.path == "/v1/querybatch" else 404)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def osv() -> Iterator[Osv]:
    server = Osv(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def test_a_known_vulnerability_fails_and_is_named(
    osv: Osv, capsys: pytest.CaptureFixture[str]
) -> None:
    def one_has(purls: list[str]) -> tuple[int, Any]:
        vulns = {"vulns": [{"id": "GHSA-2"}, {"id": "GHSA-1"}]}
        return 200, {"results": [vulns if "/httptools@" in purl else {} for purl in purls]}

    osv.answer = one_has
    assert advisories.main(osv.url) == 1
    said = capsys.readouterr().out
    assert re.search(r"^httptools \S+: GHSA-1, GHSA-2$", said, re.MULTILINE)
    assert "1 have advisories" in said


def test_all_that_is_pinned_is_asked_for(osv: Osv, capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[str] = []

    def none_has(purls: list[str]) -> tuple[int, Any]:
        asked.extend(purls)
        return 200, {"results": [{} for _ in purls]}

    osv.answer = none_has
    assert advisories.main(osv.url) == 0
    assert set(asked) == {one.purl for one in [*deployed(), *tools()]}
    assert f"{len(asked)} packages were checked, 0 have" in capsys.readouterr().out


@pytest.mark.parametrize("status", [200, 403, 503])
def test_without_an_answer_it_says_aloud_that_nothing_was_checked(
    osv: Osv, capsys: pytest.CaptureFixture[str], status: int
) -> None:
    osv.answer = lambda purls: (status, ["a proxy's page"])
    assert advisories.main(osv.url) == 0
    assert capsys.readouterr().out.startswith("skipped: ")


def test_without_a_network_it_says_so_too(osv: Osv, capsys: pytest.CaptureFixture[str]) -> None:
    nowhere = osv.url
    osv.server_close()
    assert advisories.main(nowhere) == 0
    assert "were NOT checked" in capsys.readouterr().out


def test_fewer_answers_than_questions_are_no_answer(
    osv: Osv, capsys: pytest.CaptureFixture[str]
) -> None:
    osv.answer = lambda purls: (200, {"results": [{} for _ in purls[1:]]})
    assert advisories.main(osv.url) == 0
    assert capsys.readouterr().out.startswith("skipped: ")
