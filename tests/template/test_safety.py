"""What the template must never allow: open doors, wide rights, lost data, fixed names."""

import re
from pathlib import Path
from typing import Any

import pytest

from duewheel.rules.access.grants import IAM_DEFAULTS, AuthMode
from duewheel.stores.registry_keys import API_KEY_KIND
from local.aws.template import (
    ACCOUNT_ID,
    REGION,
    STACK_NAME,
    Resource,
    Template,
    load_template,
    source_of,
)
from tests.support.cases import each_case
from tests.support.rights_in_use import CUSTOMER_KEY

TEMPLATE = Path(__file__).parents[2] / "template.yaml"
FIXED_NAMES = {
    "FunctionName", "GroupName", "LayerName", "LogGroupName", "QueueName", "RoleName", "TableName",
}  # fmt: skip


@pytest.fixture(scope="module")
def source() -> dict[str, Any]:
    parsed: dict[str, Any] = source_of(TEMPLATE)
    return parsed


@pytest.fixture(scope="module", params=["iam", "keys"])
def template(request: pytest.FixtureRequest) -> Template:
    every = {"IngestBusinesses": "*", "StackTimersAs": "duewheel-write"}
    return load_template(TEMPLATE, {"AuthMode": request.param, **every})


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


FILES_FOR_ALL = {"GET /console", "GET /console/{file+}"}
BY_TOKEN = {f"POST /v1/tasks/{{task_id}}/{what}" for what in ("complete", "fail", "progress")}


@each_case(
    ("mode", "type_", "authorizer"),
    [("iam", "AWS_IAM", None), ("keys", "CUSTOM", "KeyAuthorizer")],
)
def test_every_route_asks_who_is_calling_but_the_consoles_and_those_by_token(
    mode: str, type_: str, authorizer: str | None
) -> None:
    template = load_template(TEMPLATE, {"AuthMode": mode})
    routes = [resolved(template, r) for r in template.of_type("AWS::ApiGatewayV2::Route")]
    is_open = [r["RouteKey"] for r in routes if r["AuthorizationType"] == "NONE"]

    assert set(is_open) == BY_TOKEN | FILES_FOR_ALL
    assert len(routes) > len(is_open)
    for route in routes:
        if route["RouteKey"] not in is_open:
            assert route["AuthorizationType"] == type_
            assert route.get("AuthorizerId") == authorizer


def test_strangers_get_the_consoles_files_and_few_of_them(template: Template) -> None:
    """Each request is a run of the function that also answers the callers."""
    (stage,) = template.of_type("AWS::ApiGatewayV2::Stage")
    limits = resolved(template, stage)["RouteSettings"]
    assert set(limits) == FILES_FOR_ALL | BY_TOKEN
    files = [limits[key] for key in FILES_FOR_ALL]
    assert sum(limit["ThrottlingRateLimit"] for limit in files) == 6
    assert all(limit["ThrottlingBurstLimit"] <= 300 for limit in files)


def test_strangers_make_few_requests_by_token(template: Template) -> None:
    """And no more at once than leaves runs of the function to callers."""
    (stage,) = template.of_type("AWS::ApiGatewayV2::Stage")
    limits = resolved(template, stage)["RouteSettings"]
    for key in BY_TOKEN:
        assert limits[key] == {"ThrottlingRateLimit": 10, "ThrottlingBurstLimit": 100}


def test_limits_of_routes_are_numbers_since_the_property_has_no_types(template: Template) -> None:
    """Of a `!Ref` or a mapping API Gateway would get a text, and refuse it."""
    (stage,) = template.of_type("AWS::ApiGatewayV2::Stage")
    limits = resolved(template, stage)["RouteSettings"].values()
    assert {type(each) for limit in limits for each in limit.values()} == {int}


def test_a_domain_leads_to_the_same_stage_and_takes_no_old_tls() -> None:
    certificate = "arn:aws:acm:us-east-1:123456789012:certificate/0f5a2c9e"
    own = {"DomainName": "timers.example.com", "CertificateArn": certificate}
    template = load_template(TEMPLATE, own)
    (mapping,) = template.of_type("AWS::ApiGatewayV2::ApiMapping")
    assert mapping.properties == {
        "ApiId": {"Ref": "HttpApi"},
        "DomainName": {"Ref": "ApiDomain"},
        "Stage": {"Ref": "ApiStage"},
    }
    properties = resolved(template, template.resources["ApiDomain"])
    assert properties["DomainName"] == own["DomainName"]
    (configuration,) = properties["DomainNameConfigurations"]
    assert configuration == {
        "CertificateArn": certificate,
        "EndpointType": "REGIONAL",
        "SecurityPolicy": "TLS_1_2",
    }


def test_without_a_domain_there_is_none() -> None:
    types = {resource.type for resource in load_template(TEMPLATE).resources.values()}
    assert not types & {"AWS::ApiGatewayV2::DomainName", "AWS::ApiGatewayV2::ApiMapping"}


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

    assert not types & {"AWS::Lambda::Url", "AWS::ApiGateway::RestApi", "AWS::SNS::Subscription"}
    assert {p["Principal"] for p in permissions} == {
        "apigateway.amazonaws.com",
        "events.amazonaws.com",
    }
    assert all("SourceArn" in p for p in permissions)


def test_every_log_group_forgets_after_a_while(template: Template) -> None:
    for group in template.of_type("AWS::Logs::LogGroup"):
        assert "RetentionInDays" in group.properties, group.logical_id


def test_no_function_is_told_to_log_its_events(source: dict[str, Any]) -> None:
    """Powertools would, with another variable than these."""
    variables = source["Globals"]["Function"]["Environment"]["Variables"]
    told = {name for name in variables if name.startswith("POWERTOOLS_")}
    assert told == {"POWERTOOLS_SERVICE_NAME"}


def test_tables_are_safe_from_deletion_and_readers_of_disks(
    source: dict[str, Any], template: Template
) -> None:
    tables = {table.logical_id: table for table in template.of_type("AWS::DynamoDB::Table")}

    for name, table in tables.items():
        assert source["Resources"][name]["UpdateReplacePolicy"] == "Retain"
        properties = resolved(template, table)
        assert properties["BillingMode"] == "PAY_PER_REQUEST"
        assert "SSESpecification" not in properties, "by a key that AWS owns, whose use is free"
    secrets = tables.pop("Secrets").properties
    assert not {"PointInTimeRecoverySpecification", "StreamSpecification"} & set(secrets)
    assert set(tables) == {"Wheel", "Registry"}
    for table in tables.values():
        properties = resolved(template, table)
        assert properties["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"]
        assert properties["TimeToLiveSpecification"] == {
            "AttributeName": "expires_at",
            "Enabled": True,
        }


KEPT = {"Wheel", "Registry", "Secrets"}


def test_what_outlives_the_stack_does_not_outlive_a_creation_that_fails(
    source: dict[str, Any],
) -> None:
    """A table that is protected from deletion could not be taken back: `make deploy` protects."""
    policies = {name: body.get("DeletionPolicy") for name, body in source["Resources"].items()}
    assert {name for name, policy in policies.items() if policy not in (None, "Delete")} == KEPT
    for name in KEPT:
        assert policies[name] == "RetainExceptOnCreate"
        assert "DeletionProtectionEnabled" not in source["Resources"][name]["Properties"]


def test_queues_are_encrypted_and_refuse_plain_http(template: Template) -> None:
    queues = template.of_type("AWS::SQS::Queue")
    refusing = [
        queue
        for policy in template.of_type("AWS::SQS::QueuePolicy")
        for queue in resolved(template, policy)["Queues"]
    ]
    for policy in template.of_type("AWS::SQS::QueuePolicy"):
        refused = policy.properties["PolicyDocument"]["Statement"][0]
        assert (refused["Effect"], refused["Principal"]) == ("Deny", "*")
        assert (refused["Action"], refused["Resource"]) == ("sqs:*", "*")
        assert refused["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}

    assert sorted(queue.logical_id for queue in queues) == sorted(refusing), "each has one policy"
    for queue in queues:
        properties = resolved(template, queue)
        assert properties["SqsManagedSseEnabled"]
        assert "KmsMasterKeyId" not in properties


def test_the_ingest_queue_lets_in_only_rules_of_the_account_that_are_named_for_the_stack() -> None:
    template = load_template(TEMPLATE, {"IngestBusinesses": "*"})
    policy = template.resources["IngestMessageQueuePolicy"]
    refused, rules = resolved(template, policy)["PolicyDocument"]["Statement"]
    assert refused["Effect"] == "Deny"
    patterns = rules.pop("Condition")["ArnLike"]["aws:SourceArn"]
    assert rules == {
        "Sid": "LetRulesSend",
        "Effect": "Allow",
        "Principal": {"Service": "events.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": "IngestMessageQueue.Arn",
    }
    of_the_stack = f"arn:aws:events:{REGION}:{ACCOUNT_ID}:rule"
    assert patterns == [f"{of_the_stack}/{STACK_NAME}-*", f"{of_the_stack}/*/{STACK_NAME}-*"]


def test_a_key_of_ones_own_seals_every_table_queue_topic_and_log() -> None:
    template = load_template(TEMPLATE, {"KmsKeyArn": CUSTOMER_KEY, "IngestBusinesses": "*"})
    for table in template.of_type("AWS::DynamoDB::Table"):
        assert resolved(template, table)["SSESpecification"] == {
            "SSEEnabled": True,
            "SSEType": "KMS",
            "KMSMasterKeyId": CUSTOMER_KEY,
        }
    for queue in template.of_type("AWS::SQS::Queue"):
        properties = resolved(template, queue)
        assert properties["KmsMasterKeyId"] == CUSTOMER_KEY
        assert "SqsManagedSseEnabled" not in properties, "AWS takes only one of them"
    for type_, key in (("SNS::Topic", "KmsMasterKeyId"), ("Logs::LogGroup", "KmsKeyId")):
        for resource in template.of_type(f"AWS::{type_}"):
            assert resolved(template, resource)[key] == CUSTOMER_KEY


def test_names_for_other_stacks_are_exported_by_the_name_of_the_stack(
    source: dict[str, Any],
) -> None:
    exports = {
        name: one["Export"]["Name"] for name, one in source["Outputs"].items() if "Export" in one
    }
    names = {"ApiUrl", "NotifierRole", "IngestQueueUrl", "AlarmTopic"}
    assert exports == {name: {"Fn::Sub": f"${{AWS::StackName}}-{name}"} for name in names}


def test_the_stage_takes_no_more_requests_than_its_parameter_says() -> None:
    template = load_template(TEMPLATE, {"ApiRequestsPerSecond": "7"})
    (stage,) = template.of_type("AWS::ApiGatewayV2::Stage")
    assert resolved(template, stage)["DefaultRouteSettings"] == {
        "ThrottlingRateLimit": "7",
        "ThrottlingBurstLimit": "7",
    }


def test_no_guard_counts_the_days_tasks_unless_it_is_told_how_many(template: Template) -> None:
    assert "TasksPerDayGuard" not in template.resources


def test_the_guard_goes_off_beyond_so_many_tasks_of_four_writes_in_a_day() -> None:
    template = load_template(TEMPLATE, {"TasksPerDayAlarm": "250000"})
    alarm = resolved(template, template.resources["TasksPerDayGuard"])
    shown, counted = alarm["Metrics"]

    assert (alarm["Threshold"], alarm["ComparisonOperator"]) == ("250000", "GreaterThanThreshold")
    assert (shown["Expression"], shown["ReturnData"]) == (f"{counted['Id']} / 4", True)
    assert counted["ReturnData"] is False, "an alarm is about one figure"
    assert counted["MetricStat"]["Metric"] == {
        "Namespace": "AWS/DynamoDB",
        "MetricName": "ConsumedWriteCapacityUnits",
        "Dimensions": [{"Name": "TableName", "Value": "Wheel"}],
    }
    assert (counted["MetricStat"]["Stat"], counted["MetricStat"]["Period"]) == ("Sum", 86400)
    assert (alarm["EvaluationPeriods"], alarm["TreatMissingData"]) == (1, "notBreaching")


class Anything:
    """In the place of other resources."""

    def ref(self, logical_id: str) -> str:
        return logical_id

    def attribute(self, logical_id: str, name: str) -> str:
        return f"{logical_id}.{name}"


def resolved(template: Template, resource: Resource) -> dict[str, Any]:
    properties: dict[str, Any] = template.resolve(resource.properties, Anything())
    return properties


def test_nothing_has_a_fixed_name(source: dict[str, Any]) -> None:
    for logical_id, resource in source["Resources"].items():
        properties = resource.get("Properties", {})
        fixed = [name for name in FIXED_NAMES if isinstance(properties.get(name), str)]
        assert fixed == [], logical_id


def test_every_arn_works_in_every_partition() -> None:
    assert not re.search(r"arn:aws[:-]", TEMPLATE.read_text(encoding="utf-8"))
