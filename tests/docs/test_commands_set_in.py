"""Commands on the pages that cannot be run here are checked against the template, the Makefile, the
models of AWS and the command line."""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore import xform_name

from docs.tables import MAKEFILES, VERBS
from functions.api.app import CALLS
from infra.operate.deploy_parameters import WrongParameters, chosen
from local.aws.template import source_of
from tests.support.bounds import quick_first
from tests.support.page_blocks import PAGES, ROOT, indented, text_of
from tests.support.set_in_commands import commands, options

TEMPLATE: Any = source_of(ROOT / "template.yaml")
LOCAL = (ROOT / "local/__main__.py").read_text()
EXTRAS = tomllib.loads((ROOT / "client/pyproject.toml").read_text())["project"][
    "optional-dependencies"
]
GLOBAL_OPTIONS = ("--stack", "--profile", "--url", "--key")
# Renamed by the AWS command line, which has a global option of the other name.
RENAMED = {"notification-endpoint": "endpoint"}
OF_ALL_COMMANDS = {"query", "output"}
# The beginnings of blocks that are not commands.
DATA = (r"\bdw_", "close_order.apply_async", '"headers": ', "[profile ")
PARAMETERS = re.compile(r"[A-Z][A-Za-z]+=")
# Queries of Logs Insights; the tests of their pages check them against the log.
QUERIES = ("filter ", "fields ", "| ")


def assert_make(words: list[str], page: str) -> None:
    (verb, *given) = words
    assert re.search(rf"^{re.escape(verb)}:", MAKEFILES, re.MULTILINE)
    for name in (word.partition("=")[0] for word in given):
        assert f"$({name})" in MAKEFILES or (verb == "local" and f'"{name}"' in LOCAL), name
    for value in (word.partition("=")[2] for word in given if word.startswith("PARAMETERS=")):
        chosen({}, "", value, TEMPLATE["Parameters"])


def assert_parameters(lines: str) -> None:
    """The parameters in a file that `make deploy` reads."""
    values = chosen({}, lines, "", TEMPLATE["Parameters"])
    assert bool(values.get("SubnetIds")) == bool(values.get("SecurityGroupIds"))


def assert_aws(words: list[str], page: str) -> None:
    service, operation, *rest = words
    model = service_model(service)
    (name,) = (known for known in model.operation_names if xform_name(known, "-") == operation)
    shape = model.operation_model(name).input_shape
    members = {xform_name(member, "-"): member for member in shape.members}
    given = {RENAMED.get(name, name): values for name, values in options(rest).items()}
    named = {option.removeprefix("no-") for option in given}
    assert {xform_name(member, "-") for member in shape.required_members} <= named
    for option, values in given.items():
        if option in OF_ALL_COMMANDS:
            continue
        member = shape.members[members[option.removeprefix("no-")]]
        assert (member.type_name == "boolean") == (not values), option
        allowed = getattr(member, "enum", None)
        assert not allowed or set(values) <= set(allowed), option
        if member.type_name in ("structure", "list"):
            assert names_in(" ".join(values)) <= names_below(member), option


@cache
def service_model(name: str) -> Any:
    return botocore.session.Session().get_service_model(name)


def names_in(text: str) -> set[str]:
    """The members that are named, in JSON or in the short form."""
    if not text.startswith(("{", "[")):
        return set(re.findall(r"(?:^|[,{])(\w+)=", text))
    found: set[str] = set()
    json.loads(text, object_hook=found.update)
    return found


def names_below(shape: Any) -> set[str]:
    if shape.type_name == "list":
        return names_below(shape.member)
    if shape.type_name != "structure":
        return set()
    return set(shape.members).union(*map(names_below, shape.members.values()))


def assert_duewheel(words: list[str], page: str) -> None:
    words = without_global_options(words)
    command = [word for word in words[:2] if word.isalpha()]
    help_text = help_of(*command)
    for option in options(words[len(command) :]):
        assert not option or f"--{option} " in help_text, option


def without_global_options(words: list[str]) -> list[str]:
    """Global options may be before the command and behind it."""
    left, rest = [], iter(words)
    for word in rest:
        if word in GLOBAL_OPTIONS:
            next(rest)
        else:
            left.append(word)
    return left


@cache
def help_of(*command: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "client/src")}
    arguments = [sys.executable, "-m", "duewheel.cli", *command, "--help"]
    return subprocess.run(
        arguments, env=environment, check=True, capture_output=True, text=True
    ).stdout


def assert_curl(words: list[str], page: str) -> None:
    """Only reads, at the stack's address."""
    (target,) = (word.removeprefix("$API_URL") for word in words if word.startswith("$API_URL"))
    path = target.partition("?")[0]
    assert any("GET" in CALLS.by_path[known] for known in CALLS.by_path if _matches(known, path))


def _matches(pattern: str, path: str) -> bool:
    return re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", pattern), path) is not None


def assert_pip(words: list[str], page: str) -> None:
    assert words[0] == "install"
    for word in words[1:]:
        if local := re.fullmatch(r"(\..*)\[(.*)\]", word):
            assert set(local[2].split(",")) <= set(EXTRAS)
            homes = ((ROOT / page).parent, ROOT)
            assert any((home / local[1] / "pyproject.toml").is_file() for home in homes)


def assert_npm(words: list[str], page: str) -> None:
    """What a page installs is what its tests use."""
    pinned = json.loads((ROOT / "requirements/typescript/package.json").read_text())
    known = {**pinned["dependencies"], **pinned["devDependencies"]}
    assert words[0] == "install"
    for word in words[1:]:
        name, at, version = word.rpartition("@")
        assert word == "--save-dev" or (at and known[name] == version), word


def assert_venv(words: list[str], page: str) -> None:
    assert words[:2] == ["-m", "venv"]


def assert_activate(words: list[str], page: str) -> None:
    assert Path(words[0]).parts[1:] == ("bin", "activate")


def assert_alone(words: list[str], page: str) -> None:
    assert words == []


CHECKS: dict[str, Callable[[list[str], str], None]] = {
    "make": assert_make,
    "aws": assert_aws,
    "duewheel": assert_duewheel,
    "awscurl": assert_curl,
    "curl": assert_curl,
    "pip": assert_pip,
    "npm": assert_npm,
    "python3": assert_venv,
    ".": assert_activate,
    "pytest": assert_alone,
}


@pytest.mark.parametrize(
    "page",
    quick_first([page for page in PAGES if indented(text_of(page))], pytest.mark.exhaustive, 2),
)
def test_a_command_on_a_page_is_valid_for_its_program(page: str) -> None:
    for block in indented(text_of(page)):
        if PARAMETERS.match(block):
            assert_parameters(block)
        elif not block.startswith(DATA):
            lines = [line for line in block.splitlines() if not line.lstrip().startswith(QUERIES)]
            for program, *words in commands("\n".join(lines)):
                CHECKS[program](words, page)


@pytest.mark.parametrize(
    "wrong",
    [
        "make nothing",
        "make audit APIURL=x",
        "make deploy ENV=dev PARAMETERS='AuthMod=keys'",
        "aws ec2 create-vpc-endpoints --vpc-id vpc-1",
        "aws ec2 create-vpc-endpoint --vpc vpc-1",
        "aws ec2 create-vpc-endpoint --service-name x",
        "aws ec2 create-vpc-endpoint --vpc-id vpc-1 --vpc-endpoint-type Door",
        "aws ec2 revoke-security-group-egress --group-id sg-1 --ip-permissions 'Protocol=-1'",
        "duewheel task make orders",
        "duewheel task get orders/a --due now",
        'curl "$API_URL/v1/weel"',
        "pip install './client[all]'",
        "npm install typescript@1.0.0",
        "whatever",
    ],
)
def test_an_invalid_command_is_found(wrong: str) -> None:
    ((program, *words),) = commands(wrong)
    with pytest.raises(
        (AssertionError, KeyError, ValueError, WrongParameters, subprocess.CalledProcessError)
    ):
        CHECKS[program](words, "README.md")


@pytest.mark.parametrize(
    "wrong",
    [
        "AuthMod=keys",
        "AuthMode=off",
        "RetentionDays=0",
        "SubnetIds=subnet-0a\nSecurityGroupIds=",
        "AuthMode=keys RetentionDays=1",
    ],
)
def test_an_invalid_parameter_is_found(wrong: str) -> None:
    with pytest.raises((AssertionError, WrongParameters)):
        assert_parameters(wrong)


def test_pages_name_only_existing_verbs_of_make() -> None:
    for page in PAGES:
        named = re.findall(r"`make ([a-z-]+)[ `]", text_of(page))
        assert set(named) <= {verb for verb, *_ in VERBS}, page
