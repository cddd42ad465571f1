"""The access log's format: JSON whatever a stranger asks for, nothing secret."""

import json
import re
from pathlib import Path

from local.aws.template import source_of
from tests.support.cases import each_case

ROOT = Path(__file__).parents[2]
STAGE = source_of(ROOT / "template.yaml")["Resources"]["ApiStage"]
FORMAT = STAGE["Properties"]["AccessLogSettings"]["Format"]
VARIABLE = re.compile(r"\$context\.[A-Za-z_.]+")
PATH = "$context.path"
# Of those that AWS documents for HTTP APIs, what neither holds a secret nor hands one on.
HARMLESS = {
    PATH,
    "$context.httpMethod",
    "$context.requestId",
    "$context.requestTime",
    "$context.identity.userArn",
    "$context.authorizer.key_id",
    "$context.identity.sourceIp",
    "$context.status",
    "$context.error.message",
    "$context.authorizer.error",
    "$context.integrationErrorMessage",
    "$context.responseLatency",
}


def written(path: str = "-") -> str:
    """A line of a request of which nothing else is known."""
    return VARIABLE.sub(lambda found: path if found[0] == PATH else "-", FORMAT)


def test_a_line_is_json_of_texts_though_nothing_of_the_request_is_known() -> None:
    pairs = json.loads(written(), object_pairs_hook=list)
    names = [name for name, _ in pairs]
    assert {value for _, value in pairs} == {"-"}
    assert len(set(names)) == len(names)
    assert "\n" not in FORMAT


@each_case("path", ['/v1/a"b', "/v1/a\\", "/v1/a\nb", '","status":"200'])
def test_a_path_that_is_escaped_stays_one_value(path: str) -> None:
    line = json.loads(written(path=json.dumps(path)[1:-1]))
    assert line == json.loads(written()) | {"path": path}


def test_a_path_that_is_not_escaped_takes_no_other_members_place() -> None:
    others = set(json.loads(FORMAT)) - {"path"}
    forged = "".join(f'","{name}":"forged' for name in sorted(others))
    line = json.loads(written(path=forged))
    assert {name: line[name] for name in others} == dict.fromkeys(others, "-")


def test_nothing_is_written_that_may_hold_a_secret() -> None:
    assert set(VARIABLE.findall(FORMAT)) <= HARMLESS
    assert FORMAT.count("$") == len(VARIABLE.findall(FORMAT))


def test_the_log_groups_name_takes_no_entry_of_its_own_in_the_policy_of_api_gateway() -> None:
    resources = source_of(ROOT / "template.yaml")["Resources"]
    name = resources["AccessLogs"]["Properties"]["LogGroupName"]["Fn::Sub"]
    assert name.startswith("/aws/vendedlogs/")
    assert "${AWS::StackName}" in name, "two stacks of an account have two groups"
