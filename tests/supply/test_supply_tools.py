"""`make sbom`, `make licences` and `make advisories`, with their tools."""

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from duewheel import __version__
from tests.support.pins import DEPLOYED, ROOT, TOOLS, pinned

BUILT = ("-o", ".venv/ready", "-o", ".venv/checks", "-o", ".venv-supply/ready")
UV = ROOT / "requirements/uv.txt"  # one package
Finished = subprocess.CompletedProcess[str]


def run(*command: str | Path, **environment: str) -> Finished:
    env = os.environ | environment
    return subprocess.run(command, cwd=ROOT, env=env, check=False, capture_output=True, text=True)


def make(*arguments: str) -> Finished:
    return run("make", "--no-print-directory", *BUILT, *arguments)


def purl(package: tuple[str, str]) -> str:
    return f"pkg:pypi/{package[0]}@{package[1]}"


# ---------------------------------------------------------------- bills of materials


@pytest.fixture(scope="module")
def bills(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bills")
    made = run(ROOT / ".venv/bin/python", "-m", "infra.release.sbom", folder)
    assert made.returncode == 0, made.stderr
    return folder


def read(bills: Path, name: str) -> dict[str, Any]:
    bill: dict[str, Any] = json.loads((bills / name).read_text("utf-8"))
    return bill


def test_the_bills_are_valid_cyclonedx(bills: Path) -> None:
    check = (
        "import sys; from cyclonedx.schema import SchemaVersion as S;"
        "from cyclonedx.validation.json import JsonStrictValidator as V;"
        "sys.exit(any(V(S.V1_6).validate_str(open(name).read()) for name in sys.argv[1:]))"
    )
    done = run(ROOT / ".venv-supply/bin/python", "-c", check, *bills.iterdir())
    assert done.returncode == 0, done.stderr


def test_the_bill_contains_each_deployed_package_with_version_licence_and_hashes(
    bills: Path,
) -> None:
    bill = read(bills, "sbom.json")
    service = bill["metadata"]["component"]
    assert (service["name"], service["version"]) == ("duewheel-service", __version__)
    hashes = {
        part["purl"]: {
            one["content"]
            for reference in part["externalReferences"]
            for one in reference.get("hashes", ())
        }
        for part in bill["components"]
    }
    assert hashes == {purl(package): pins for package, pins in pinned(DEPLOYED).items()}
    assert all(part["licenses"] for part in bill["components"])


def test_every_package_of_the_bill_is_needed_by_the_service_or_by_another(bills: Path) -> None:
    bill = read(bills, "sbom.json")
    needs = {one["ref"]: one["dependsOn"] for one in bill["dependencies"]}
    reached: set[str] = set()
    ahead = [service := bill["metadata"]["component"]["bom-ref"]]
    while ahead:
        reached |= set(ahead)
        ahead = [ref for one in ahead for ref in needs[one] if ref not in reached]
    assert reached - {service} == {part["bom-ref"] for part in bill["components"]}


def test_the_bill_of_the_tools_contains_each_version_once_and_no_deployed_one(bills: Path) -> None:
    listed = [part["purl"] for part in read(bills, "sbom-tools.json")["components"]]
    tools = {package for path in TOOLS for package in pinned(path)} - set(pinned(DEPLOYED))
    assert sorted(listed) == sorted(map(purl, tools))
    assert any(one.startswith("pkg:pypi/aws-sam-cli@") for one in listed)


def test_the_bills_contain_neither_time_nor_place_of_the_build(bills: Path) -> None:
    for path in bills.iterdir():
        bill = read(bills, path.name)
        assert "serialNumber" not in bill
        assert "timestamp" not in bill["metadata"]
        assert str(ROOT) not in path.read_text("utf-8")


# ---------------------------------------------------------------- licences


def licences_with(folder: Path, package: str, licence: str) -> Finished:
    """In an environment that also has this package with this licence."""
    info = folder / f"{package}-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {package}\nVersion: 1\n{licence}")
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={folder} exec {ROOT}/.venv/bin/python "$@"\n')
    python.chmod(0o755)
    return make("licences", f"IN_VENV={folder}")


def test_every_licence_is_allowed() -> None:
    done = make("licences")
    assert done.returncode == 0, done.stderr
    deployed, _, tools = done.stdout.partition("Tools:")
    for name, _ in pinned(DEPLOYED):
        line = re.compile(rf"^ *{name.replace('-', '[-_]')} ", re.MULTILINE)
        assert line.search(deployed)
        assert not line.search(tools)
    assert " hypothesis " in tools


@pytest.mark.parametrize(
    "licence",
    [
        "License-Expression: GPL-3.0-only",
        "Classifier: License :: OSI Approved :: GNU Affero General Public License v3",
        "License: Proprietary",
        "",
    ],
)
def test_a_licence_that_is_not_allowed_is_an_error(tmp_path: Path, licence: str) -> None:
    done = licences_with(tmp_path, "something", licence)
    assert done.returncode != 0
    assert "not in allow-only licenses was found for package something" in done.stderr


def test_a_licence_allowed_for_tools_only_is_an_error_for_a_deployed_package(
    tmp_path: Path,
) -> None:
    done = licences_with(tmp_path, "httptools", "License-Expression: MPL-2.0")
    assert (
        "license MPL-2.0 not in allow-only licenses was found for package httptools" in done.stderr
    )


# ---------------------------------------------------------------- advisories

Answer = Callable[[str], tuple[int, object]]
FIRST = "jinja2"  # the first package in a query


class Osv(ThreadingHTTPServer):
    """Answers a query for a package with the answer that the test sets."""

    answer: Answer
    queried: set[tuple[str, str]]


class Handler(BaseHTTPRequestHandler):
    server: Osv

    def do_POST(self) -> None:
        question = json.loads(self.rfile.read(int(self.headers["content-length"])))
        name = question["package"]["name"]
        self.server.queried.add((name, question["version"]))
        status, body = self.server.answer(name)
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, format: str, *args: object) -> None:
        """Keeps the tests' output free of requests."""


@pytest.fixture
def osv() -> Iterator[Osv]:
    server = Osv(("127.0.0.1", 0), Handler)
    server.queried = set()
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def vulnerable(*names: str) -> Answer:
    def answer(name: str) -> tuple[int, object]:
        affected = [{"package": {"name": name, "ecosystem": "PyPI"}}]
        return 200, {"vulns": [{"id": "GHSA-1", "affected": affected}]} if name in names else {}

    return answer


def advisories(osv: Osv, *files: Path) -> Finished:
    command = ROOT / "infra/release/advisories"
    return run(command, *files, OSV=f"http://127.0.0.1:{osv.server_port}")


def test_a_known_vulnerability_fails_and_is_named(osv: Osv) -> None:
    osv.answer = vulnerable(FIRST, "httptools")
    done = advisories(osv, DEPLOYED, UV)
    assert done.returncode != 0
    assert re.search(r"^httptools +\S+ +GHSA-1", done.stdout, re.MULTILINE)
    assert osv.queried >= set(pinned(DEPLOYED)) | set(pinned(UV))


def test_a_check_without_vulnerabilities_passes(osv: Osv) -> None:
    osv.answer = vulnerable(FIRST)
    done = advisories(osv, UV)
    assert done.returncode == 0, done.stderr
    assert "No known vulnerabilities found" in done.stderr


def test_make_passes_all_pinned_packages_to_the_check() -> None:
    command = make("--dry-run", "advisories").stdout.split()
    assert [ROOT / name for name in command[1:]] == [DEPLOYED, *TOOLS]


@pytest.mark.parametrize(
    "answer", [(200, "a proxy's page"), (200, {}), (403, {}), (503, {"vulns": [{}]}), None]
)
def test_a_check_without_an_answer_reports_that_it_checked_no_package(
    osv: Osv, answer: tuple[int, object] | None
) -> None:
    if answer is None:
        osv.server_close()
    osv.answer = lambda name: answer or (500, {})
    done = advisories(osv, DEPLOYED)
    assert done.returncode == 0
    assert done.stdout.startswith("skipped: NOT checked")


def test_a_service_that_stops_answering_is_a_failure(osv: Osv) -> None:
    """Only some versions have been checked then."""
    answers = iter([vulnerable(FIRST)(FIRST)])
    osv.answer = lambda name: next(answers, (503, {}))
    assert advisories(osv, UV).returncode != 0


def test_a_file_without_pinned_versions_is_a_failure(osv: Osv, tmp_path: Path) -> None:
    osv.answer = vulnerable(FIRST)
    (tmp_path / "requirements.txt").write_text("six")
    assert advisories(osv, tmp_path / "requirements.txt").returncode != 0
