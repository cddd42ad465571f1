"""docs/operations.md: its commands are checked against AWS's service models and the template, its
runbook against the alarms."""

import re
import shlex

import botocore.session

from docs.tables import actions, deployed
from local.aws.template import load_template, source_of
from tests.docs.test_commands_set_in import assert_aws
from tests.support.cases import each_case
from tests.support.page_blocks import ROOT, text_of
from tests.support.rights_in_use import EVERYTHING, TEMPLATE

PAGE = text_of("docs/operations.md")
RESOURCES = source_of(ROOT / "template.yaml")["Resources"]
ALARMS = PAGE.partition("\n## Alarms\n")[2].partition("\n## ")[0]
PARTS = ["For users", "Look", "Do", "Over"]


def commands() -> list[str]:
    """Each command in a line of its own, without the commands within it."""
    text = PAGE.replace("\\\n", " ")
    text = re.sub(r"\"?\$\(name [$A-Za-z]+\)\"?", "NAME", text)
    text = re.sub(r"`(aws [^`]*)`", lambda match: f"\n{' '.join(match[1].split())}\n", text)
    return [
        part[part.index("aws ") :] for part in re.split(r"[\n;]", text) if " aws " in f" {part}"
    ]


def test_commands_of_the_page_are_found() -> None:
    assert len(commands()) > 20
    assert {command.split()[1] for command in commands()} >= {"dynamodb", "lambda", "sns"}


@each_case("command", commands())
def test_a_command_exists_in_aws_and_has_its_required_options(command: str) -> None:
    _, service, operation, *rest = shlex.split(command.rstrip(")"))
    if operation == "wait":
        client = botocore.session.get_session().create_client(service, region_name="us-east-1")
        assert rest[0] in {name.replace("_", "-") for name in client.waiter_names}
    else:
        assert_aws([service, operation, *rest], "docs/operations.md")


def unassigned(page: str) -> set[str]:
    """Variables that are used before a command on the page sets them. Arguments, such as those of
    `make`, set none."""
    used = [(use[1], page[: use.start()]) for use in re.finditer(r"\$\{?([A-Z_]+)", page)]
    set_by = r"(?:^ *|`){0}=|^ *for {0} in "
    return {name for name, text in used if not re.search(set_by.format(name), text, re.MULTILINE)}


def test_every_variable_is_set_before_it_is_used() -> None:
    assert unassigned(PAGE) == set()


@each_case(
    "page",
    [
        'aws x --y "$WHEEL"',
        'make x WHEEL="$WHEEL"',
        "aws x ${WHEEL}\nWHEEL=a",
        'WHEELS=a\n"$WHEEL"',
    ],
)
def test_a_variable_that_is_never_set_is_found(page: str) -> None:
    assert unassigned(page) == {"WHEEL"}


def test_named_resources_exist_and_retained_ones_are_noted_before_the_deletion() -> None:
    template = load_template(TEMPLATE, EVERYTHING)
    named = set(re.findall(r"\$\(name ([A-Z][A-Za-z]+)\)", PAGE))
    for loop in re.findall(r"for [FM] in ([A-Za-z ]+);", PAGE):
        named |= set(loop.split())
    assert named
    assert named <= set(template.resources)
    kept = {name for name, one in RESOURCES.items() if "Retain" in one.get("DeletionPolicy", "")}
    assert kept == set(re.findall(r"^   [A-Z]+=\$\(name ([A-Za-z]+)\)$", PAGE, re.MULTILINE))


def test_each_alarm_names_its_section_with_meaning_actions_and_end() -> None:
    sections = {
        each.splitlines()[0].lower().replace(" ", "-"): re.findall(r"^\*\*(.+?)\*\*", each, re.M)
        for each in ALARMS.split("\n### ")[1:]
    }
    assert sections == dict.fromkeys(sections, PARTS)
    for alarm in deployed().alarms:
        (anchor,) = re.findall(r"Runbook: docs/operations\.md#([a-z-]+)$", alarm.description)
        assert anchor.replace("-", "") == alarm.name.lower()
    assert sorted(sections) == sorted(re.findall(r"^\| \[\w+\]\(#([a-z-]+)\)", ALARMS, re.M))


def test_queries_use_actions_that_are_logged() -> None:
    queries = re.findall(r"filter action (?:= |in )(\"[a-z-]+\"|\[.*?\])", PAGE)
    assert len(queries) > 8
    assert {name for query in queries for name in re.findall(r'"([a-z-]+)"', query)} <= actions()
