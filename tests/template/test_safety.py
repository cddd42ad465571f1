"""What the template must never allow: open doors, wide rights, lost data, fixed names."""

import re
from pathlib import Path
from typing import Any

import pytest
from samtranslator.yaml_helper import yaml_parse

from duewheel.rules.callers import IAM_DEFAULTS, AuthMode
from duewheel.stores.registry_keys import API_KEY_KIND
from local.resources import Resources
from local.template import Template, load_template

TEMPLATE = Path(__file__).parents[2] / "template.yaml"
FIXED_NAMES = {
    "FunctionName", "GroupName", "LayerName", "LogGroupName", "QueueName", "RoleName", "TableName",
}  # fmt: skip


@pytest.fixture(scope="module")
def source() -> dict[str, Any]:
    parsed: dict[str, Any] = yaml_parse(TEMPLATE.read_text(encoding="utf-8"))
    return parsed


@pytest.fixture(scope="module", params=["iam", "keys"])
def template(request: pytest.FixtureRequest) -> Template:
    return load_template(TEMPLATE, {"AuthMode": request.param})


def statements(template: Template) -> list[tuple[str, dict[str, Any]]]:
    of_roles = [
        (role.logical_id, statement)
        for role in template.of_type("AWS::IAM::Role")
        for policy in role.properties["Policies"]
        for statement in policy["PolicyDocument"]["Statement"]
    ]
    beside = [
        (role["Ref"], statement)
        for policy in template.of_type("AWS::IAM::Policy")
        for role in policy.properties["Roles"]
        for statement in policy.properties["PolicyDocument"]["Statement"]
    ]
    return of_roles + beside


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


@pytest.mark.parametrize(
    ("mode", "type_", "authorizer"),
    [("iam", "AWS_IAM", None), ("keys", "CUSTOM", "KeyAuthorizer")],
)
def test_every_route_asks_who_is_calling(
    resources: Resources, mode: str, type_: str, authorizer: str | None
) -> None:
    template = load_template(TEMPLATE, {"AuthMode": mode})
    routes = template.of_type("AWS::ApiGatewayV2::Route")
    id_of = None if authorizer is None else resources_of(template, resources).ref(authorizer)

    assert routes
    for route in routes:
        asks = resources_of(template, resources).resolve(route.properties)
        assert asks["AuthorizationType"] == type_
        assert asks.get("AuthorizerId") == id_of


def resources_of(template: Template, like: Resources) -> Resources:
    return Resources(template, like._dynamodb, like._sqs)


def test_no_deployment_can_be_told_to_ask_nobody(source: dict[str, Any]) -> None:
    assert source["Parameters"]["AuthMode"]["AllowedValues"] == [AuthMode.IAM, AuthMode.KEYS]
    assert set(source["Parameters"]["IamDefault"]["AllowedValues"]) == set(IAM_DEFAULTS)


def test_without_keys_there_is_no_authorizer() -> None:
    template = load_template(TEMPLATE, {"AuthMode": "iam"})
    assert not [name for name in template.resources if "Authorizer" in name]


def test_the_authorizer_is_asked_by_the_header_alone_and_for_a_minute() -> None:
    template = load_template(TEMPLATE, {"AuthMode": "keys"})
    properties = template.resources["KeyAuthorizer"].properties
    assert properties["IdentitySource"] == ["$request.header.Authorization"]
    assert properties["AuthorizerResultTtlInSeconds"] == 60
    assert properties["EnableSimpleResponses"] is True


def test_the_authorizer_reaches_records_of_keys_alone() -> None:
    template = load_template(TEMPLATE, {"AuthMode": "keys"})
    on_tables = [
        statement
        for role, statement in statements(template)
        if role == "AuthorizerRole" and "dynamodb:GetItem" in as_list(statement["Action"])
    ]
    (statement,) = on_tables
    assert statement["Action"] == ["dynamodb:GetItem", "dynamodb:UpdateItem"]
    keys = {"dynamodb:LeadingKeys": [API_KEY_KIND]}
    assert statement["Condition"] == {"ForAllValues:StringEquals": keys}


def test_there_is_no_other_way_in_than_the_routes(template: Template) -> None:
    types = {resource.type for resource in template.resources.values()}
    permissions = [r.properties for r in template.of_type("AWS::Lambda::Permission")]

    assert not types & {"AWS::Lambda::Url", "AWS::ApiGateway::RestApi", "AWS::SNS::Topic"}
    assert {p["Principal"] for p in permissions} == {
        "apigateway.amazonaws.com",
        "events.amazonaws.com",
    }
    assert all("SourceArn" in p for p in permissions)


def test_every_right_names_its_actions_and_a_resource_of_this_stack(template: Template) -> None:
    for role, statement in statements(template):
        assert statement["Effect"] == "Allow", role
        assert not [a for a in as_list(statement["Action"]) if "*" in a], role
        for resource in as_list(statement["Resource"]):
            assert owner_of_arn(resource) in template.resources, (role, resource)


def owner_of_arn(resource: dict[str, Any]) -> str | None:
    """The logical id in `!GetAtt X.Arn`, or in `!Sub ${X.Arn}/index/name`; None in any other."""
    [(function, value)] = resource.items()
    if function == "Fn::GetAtt" and value[1] == "Arn":
        return str(value[0])
    index = re.fullmatch(r"\$\{(\w+)\.Arn\}/index/[a-z_]+", str(value))
    return index[1] if function == "Fn::Sub" and index else None


def test_a_function_may_invoke_the_notifier_and_no_other(template: Template) -> None:
    invoking = {
        role: statement["Resource"]
        for role, statement in statements(template)
        if "lambda:InvokeFunction" in as_list(statement["Action"])
    }

    assert set(invoking) == {"ApiRole", "SchedulerRole", "NotifierRole", "SweeperRole"}
    for resource in invoking.values():
        assert resource == {"Fn::GetAtt": ["NotifierFunction", "Arn"]}


def test_every_function_has_a_role_and_a_log_group_of_its_own(template: Template) -> None:
    functions = template.of_type("AWS::Lambda::Function")
    roles = [f.properties["Role"]["Fn::GetAtt"][0] for f in functions]
    groups = [f.properties["LoggingConfig"]["LogGroup"]["Ref"] for f in functions]

    assert len(set(roles)) == len(set(groups)) == len(functions)
    for role, group in zip(roles, groups, strict=True):
        writable = [
            resource["Fn::GetAtt"][0]
            for owner, statement in statements(template)
            if owner == role and "logs:PutLogEvents" in as_list(statement["Action"])
            for resource in as_list(statement["Resource"])
        ]
        assert writable == [group]


def test_every_log_group_forgets_after_a_while(template: Template) -> None:
    for group in template.of_type("AWS::Logs::LogGroup"):
        assert "RetentionInDays" in group.properties, group.logical_id


def test_tables_are_safe_from_deletion_and_readers_of_disks(source: dict[str, Any]) -> None:
    tables = [r for r in source["Resources"].values() if r["Type"] == "AWS::DynamoDB::Table"]

    assert len(tables) == 2
    for table in tables:
        assert table["DeletionPolicy"] == table["UpdateReplacePolicy"] == "Retain"
        properties = table["Properties"]
        assert properties["BillingMode"] == "PAY_PER_REQUEST"
        assert properties["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"]
        assert properties["SSESpecification"]["SSEEnabled"]
        assert properties["TimeToLiveSpecification"] == {
            "AttributeName": "expires_at",
            "Enabled": True,
        }


def test_queues_are_encrypted_and_refuse_plain_http(template: Template) -> None:
    queues = template.of_type("AWS::SQS::Queue")
    refusing = [
        statement["Resource"]["Fn::GetAtt"][0]
        for policy in template.of_type("AWS::SQS::QueuePolicy")
        for statement in policy.properties["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Deny"
        and statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    ]

    assert {queue.logical_id for queue in queues} == set(refusing)
    assert all(queue.properties["SqsManagedSseEnabled"] for queue in queues)


def test_nothing_has_a_fixed_name(source: dict[str, Any]) -> None:
    for logical_id, resource in source["Resources"].items():
        properties = resource.get("Properties", {})
        fixed = [name for name in FIXED_NAMES if isinstance(properties.get(name), str)]
        assert fixed == [], logical_id


def test_every_arn_works_in_every_partition() -> None:
    assert not re.search(r"arn:aws[:-]", TEMPLATE.read_text(encoding="utf-8"))
