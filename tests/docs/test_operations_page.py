"""docs/operations.md: the AWS commands against AWS's service models, names against the template."""

import re
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore import xform_name

from duewheel.rules.sweep.horizon import NEWER_WAIT_SECONDS
from infra.operate import reconciling
from local.aws.template import Template, source_of
from tests.conftest import the_template

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "operations.md").read_text("utf-8")
RESOURCES = source_of(ROOT / "template.yaml")["Resources"]
PARAMETERS = source_of(ROOT / "template.yaml")["Parameters"]
# By the AWS command line, which has an option of the other name for all its commands.
NAMED_ANEW = {"notification-endpoint": "endpoint"}
OF_ALL_COMMANDS = {"query", "output", "region", "profile"}

_SESSION = botocore.session.get_session()


def commands() -> list[str]:
    """Each in a line of its own, without what is looked up within it."""
    text = PAGE.replace("\\\n", " ")
    text = re.sub(r"\"?\$\(name [$A-Za-z]+\)\"?", "NAME", text)
    text = re.sub(r"`(aws [^`]*)`", lambda match: f"\n{' '.join(match[1].split())}\n", text)
    return [
        part[part.index("aws ") :] for part in re.split(r"[\n;]", text) if " aws " in f" {part}"
    ]


def model_of(command: str) -> tuple[Any, dict[str, Any]]:
    _, service, operation, *_ = command.split()
    model = _SESSION.get_service_model(service)
    named = {xform_name(name, "-"): name for name in model.operation_names}
    shape = model.operation_model(named[operation]).input_shape
    return shape, {xform_name(name, "-"): member for name, member in shape.members.items()}


def options_of(command: str) -> list[str]:
    return re.findall(r"(?<=\s)--([a-z0-9-]+)", command)


def test_there_are_commands_to_look_at() -> None:
    assert len(commands()) > 20
    assert {command.split()[1] for command in commands()} >= {"dynamodb", "lambda", "kms"}


@pytest.mark.parametrize("command", commands())
def test_a_command_is_one_that_aws_has_with_all_that_it_needs(command: str) -> None:
    _, service, operation, *rest = command.split()
    if operation == "wait":
        waiters = _SESSION.create_client(service, region_name="us-east-1").waiter_names
        assert rest[0] in {name.replace("_", "-") for name in waiters}
        return
    shape, members = model_of(command)
    said = set()
    for option in options_of(command):
        option = NAMED_ANEW.get(option, option)
        name = option.removeprefix("no-") if option not in members else option
        assert name in members or option in OF_ALL_COMMANDS, f"--{option}"
        assert option == name or members[name].type_name == "boolean"
        said.add(name)
    assert {xform_name(name, "-") for name in shape.required_members} <= said


def test_an_option_that_there_is_not_is_found_out() -> None:
    """Or the test above would see nothing."""
    _, members = model_of("aws dynamodb delete-table --table NAME")
    assert options_of("aws dynamodb delete-table --table NAME") == ["table"]
    assert "table" not in members


def unassigned(page: str) -> set[str]:
    """Variables that are used before anything on the page sets them. What a command is given, as
    `make` is, sets none."""
    used = [(use[1], page[: use.start()]) for use in re.finditer(r"\$\{?([A-Z_]+)", page)]
    set_by = r"(?:^ *|`){0}=|^ *for {0} in "
    return {name for name, text in used if not re.search(set_by.format(name), text, re.MULTILINE)}


def test_every_variable_is_set_before_it_is_used() -> None:
    assert unassigned(PAGE) == set()


@pytest.mark.parametrize(
    "page",
    [
        'aws x --y "$WHEEL"',
        'make x WHEEL="$WHEEL"',
        "aws x ${WHEEL}\nWHEEL=a",
        'WHEELS=a\n"$WHEEL"',
    ],
)
def test_a_variable_that_nothing_sets_is_found_out(page: str) -> None:
    assert unassigned(page) == {"WHEEL"}


def test_resources_and_parameters_are_the_templates() -> None:
    template: Template = the_template("precise")
    named = set(re.findall(r"\$\(name ([A-Z][A-Za-z]+)\)", PAGE))
    for loop in re.findall(r"for [FM] in ([A-Za-z ]+);", PAGE):
        named |= set(loop.split())
    assert named
    assert named <= set(template.resources)
    for parameter in ("NotifierConcurrency", "SlowNotifierConcurrency", "ProvisionedPollers"):
        assert f"`{parameter}`" in PAGE or parameter in PAGE
        assert parameter in PARAMETERS
    kept = {name for name, one in RESOURCES.items() if "Retain" in one.get("DeletionPolicy", "")}
    assert kept == set(re.findall(r"^   [A-Z]+=\$\(name ([A-Za-z]+)\)$", PAGE, re.MULTILINE))


def test_what_it_says_of_times_and_limits_is_so() -> None:
    assert (NEWER_WAIT_SECONDS, "an hour at most" in PAGE) == (3_600, True)
    assert (reconciling.AHEAD_SECONDS, "from five minutes later on" in PAGE) == (300, True)
    assert RESOURCES["SchedulerFunction"]["Properties"]["Timeout"] == 300
    assert RESOURCES["NotifierFunction"]["Properties"]["Timeout"] == 60
    assert "MessageRetentionPeriod" not in RESOURCES["SliceQueue"]["Properties"], "four days"
    assert RESOURCES["SliceQueue"]["Properties"]["RedrivePolicy"]["maxReceiveCount"] == 100
