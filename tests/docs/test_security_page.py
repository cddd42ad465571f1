"""docs/security.md against the service: the pattern of keys, names of roles, times."""

import re
from pathlib import Path

import pytest

from duewheel.rules.access.api_keys import id_text, key_text, secret_text
from duewheel.rules.access.grants import ALL, AuthMode, Callers, Grant, Right
from local.aws.template import source_of
from tests.support.api_page import EXAMPLES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text("utf-8")
AUTHORIZER = source_of(ROOT / "template.yaml")["Resources"]["KeyAuthorizer"]


def test_the_pattern_for_scanners_finds_every_key_wherever_it_lies() -> None:
    (pattern,) = re.findall(r"^    (\\b.*\\b)$", PAGE, re.MULTILINE)
    scanner = re.compile(pattern)
    keys = [key_text(id_text(n), secret_text(bytes([n] * 32))) for n in range(256)]
    for text in ("'{}'", "KEY={}\n", "bearer {};", '{{"key":"{}"}}', "https://a.example/?{}&a"):
        found = scanner.findall("".join(text.format(key) for key in keys))
        assert found == keys, text
    assert scanner.findall("".join(EXAMPLES.values())), "those that api.md shows"


@pytest.mark.parametrize(
    ("name", "grant"),
    [
        ("duewheel-write", Grant(Right.WRITE, ALL)),
        ("duewheel-write-orders", Grant(Right.WRITE, "orders")),
        ("duewheel-read-orders-+", Grant(Right.READ, "orders-*")),
        ("duewheel-read-Orders", None),
    ],
)
def test_the_names_that_it_shows_grant_what_it_says(name: str, grant: Grant | None) -> None:
    assert f"`{name}`" in PAGE
    identity = {"userArn": f"arn:aws:iam::123456789012:user/{name}"}
    access = Callers(AuthMode.IAM, "123456789012", Right.ADMIN).access({"iam": identity}, 0)
    assert access.grants == (() if grant is None else (grant,))


def test_a_revoked_key_is_good_for_no_longer_than_it_says() -> None:
    kept_seconds = AUTHORIZER["Properties"]["AuthorizerResultTtlInSeconds"]
    assert f"refused within {kept_seconds} seconds" in PAGE
