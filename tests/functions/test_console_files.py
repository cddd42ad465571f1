"""The console's files, the only content that is served without authentication."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from functions.api import app
from local.aws.template import load_template
from tests.functions.conftest import Context
from tests.support.cases import each_case
from tests.support.clock import ManualClock

ROOT = Path(__file__).parents[2]
TEMPLATE = ROOT / "template.yaml"
FOLDER = ROOT / "layers/core/duewheel/console"
FILES = sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.*"))
REFERENCES = re.compile(r"""(?:from|import|href=|src=)\s*["'](\.{0,2}/[^"'#]+\.\w+)["']""")
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
FOR_WIDTHS = re.compile(r"@media[^{]*\{(?:[^{}]*\{[^{}]*\})*\s*\}")
NAMESPACE = "http://www.w3.org/2000/svg"


def answer(path: str, method: str = "GET", **headers: str) -> dict[str, Any]:
    event = {
        "rawPath": path,
        "headers": headers,
        "requestContext": {"http": {"method": method, "path": path}, "requestId": "r"},
    }
    return app.handler(event, Context())


@each_case("name", FILES)
def test_every_file_is_served_with_its_content_type(name: str) -> None:
    types = {".js": "text/javascript", ".css": "text/css", ".html": "text/html"}
    got = answer(f"/console/{name}")
    assert got["statusCode"] == 200
    if name != "index.html":
        assert got["body"] == (FOLDER / name).read_text(encoding="utf-8")
    expected = types.get(Path(name).suffix, "image/svg+xml")
    assert got["headers"]["content-type"].startswith(expected)
    assert got["headers"]["x-content-type-options"] == "nosniff"


@each_case("name", FILES)
def test_files_refer_only_to_existing_files_of_the_console(name: str) -> None:
    text = (FOLDER / name).read_text(encoding="utf-8").replace(NAMESPACE, "")
    here = (FOLDER / name).parent
    for reference in REFERENCES.findall(text):
        inside = reference.removeprefix("/console/")
        path = FOLDER / inside if inside != reference else here / reference
        assert path.resolve().is_file(), reference
    assert not re.search(r"https?://(?!\S*[…{$])[a-z0-9]", text.replace("https://example.com", ""))


def test_each_selector_is_in_one_stylesheet() -> None:
    """Every page loads all stylesheets, so a later one would override an earlier one everywhere."""
    sheets = Counter(
        selector
        for name in FILES
        if name.endswith(".css")
        for selector in selectors((FOLDER / name).read_text(encoding="utf-8"))
    )
    assert [selector for selector, count in sheets.items() if count > 1] == []


def selectors(sheet: str) -> set[str]:
    """The selectors of the rules without a media query."""
    rules = re.findall(r"([^{}]+)\{[^{}]*\}", FOR_WIDTHS.sub("", COMMENT.sub("", sheet)))
    return {selector.strip() for rule in rules for selector in rule.split(",")}


def test_the_root_of_the_console_is_its_page() -> None:
    index = answer("/console/index.html")
    assert answer("/console") == answer("/console/") == index


def test_the_security_policy_allows_only_the_consoles_scripts() -> None:
    policy = answer("/console")["headers"]["content-security-policy"].split("; ")
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "style-src 'self'" in policy
    assert "connect-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "require-trusted-types-for 'script'" in policy
    assert not [directive for directive in policy if "unsafe" in directive or "*" in directive]
    markup = (FOLDER / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\bon\w+=|\bstyle=|javascript:", markup)


def test_the_page_refers_to_files_by_an_immutable_edition() -> None:
    page = answer("/console")
    assert page["headers"]["cache-control"] == "no-cache"
    named = re.findall(r'(?:src|href)="(/console/[^"]+)"', page["body"])
    assert len(named) > 5
    assert len({path.split("/")[2] for path in named}) == 1
    for path in named:
        got = answer(path)
        assert got["statusCode"] == 200
        assert "immutable" in got["headers"]["cache-control"]
    assert answer(f"/console/{named[0].split('/')[2]}/index.html")["statusCode"] == 404
    assert answer("/console/0123456789abcdef/main.js")["statusCode"] == 404


def test_a_visit_and_a_reload_stay_within_the_throttling_of_the_routes() -> None:
    """A browser with an empty cache requests all files nearly at once."""
    (stage,) = load_template(TEMPLATE, {}).of_type("AWS::ApiGatewayV2::Stage")
    burst = stage.properties["RouteSettings"]["GET /console/{file+}"]["ThrottlingBurstLimit"]
    assert burst >= 2 * len(FILES)


def test_a_cached_file_is_not_sent_again() -> None:
    first = answer("/console/main.js")
    etag = first["headers"]["etag"]
    again = answer("/console/main.js", **{"If-None-Match": etag})
    assert (again["statusCode"], again["body"]) == (304, "")
    assert again["headers"]["etag"] == etag
    assert answer("/console/main.js", **{"If-None-Match": '"other"'})["statusCode"] == 200


@each_case(
    "path",
    [
        "/console/nothing.js",
        "/console/../log.py",
        "/console/../interface/openapi.json",
        "/console/parts",
        "/console//main.js",
        "/console/__init__.py",
        "/console/%2e%2e/log.py",
        "/console/\x00",
    ],
)
def test_other_paths_of_the_console_are_not_found(path: str) -> None:
    got = answer(path)
    assert got["statusCode"] == 404
    assert '"urn:duewheel:problem:unknown-call"' in got["body"]


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/console"), ("GET", "/consoles"), ("GET", "/v1/health"), ("GET", "/v1/console")],
)
def test_other_calls_need_authentication(method: str, path: str, wired: ManualClock) -> None:
    assert answer(path, method)["statusCode"] in (403, 404)
