"""What each function's role gives it, and what it must never give."""

import re
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from duewheel.stores import registry_keys
from local.aws.actions import ActionRequest
from local.aws.emulator import Emulator
from local.aws.permissions import must_allow, taken_refusals
from local.aws.policies import Right, Role, Statement, roles_of, table_policies
from local.aws.resources import Resources, create_resources
from local.aws.template import load_template
from local.control.inbox_resources import ALLOWED
from tests.support.cases import each_case
from tests.support.rights_in_use import (
    CUSTOMER_KEY,
    EVERYTHING,
    INTERFACES,
    TEMPLATE,
    given,
    unused,
    used_by_aws,
)

PRIVATE_NETWORK = {name: EVERYTHING[name] for name in ("SubnetIds", "SecurityGroupIds")}
PARAMETERS = [{}, EVERYTHING]
PARTS_OF_RESOURCES = re.compile(r"(/index/[a-z_]+)?(:live)?")


def resources_with(emulator: Emulator, overrides: dict[str, str]) -> Resources:
    template = load_template(TEMPLATE, overrides)
    return create_resources(template, boto3.client("dynamodb"), boto3.client("sqs"))


def roles_with(emulator: Emulator, overrides: dict[str, str]) -> dict[str, Role]:
    return roles_of(resources_with(emulator, overrides))


@pytest.mark.parametrize("overrides", PARAMETERS)
def test_every_right_is_to_resources_of_this_stack_or_of_its_parameters(
    emulator: Emulator, overrides: dict[str, str]
) -> None:
    resources = resources_with(emulator, overrides)
    own = {resources.attribute(name, "Arn") for name in _with_arns(resources)}
    named = {one for value in overrides.values() for one in value.split(",")}
    for right in given(resources):
        is_own = any(
            right.resource.startswith(arn)
            and PARTS_OF_RESOURCES.fullmatch(right.resource.removeprefix(arn))
            for arn in own
        )
        is_named = right.resource in named
        is_of_a_network = (right.role, right.resource) == ("NotifierRole", "*")
        assert is_own or is_named or is_of_a_network, right
        if is_of_a_network:
            assert right.action.removeprefix("ec2:") in INTERFACES


def _with_arns(resources: Resources) -> list[str]:
    types = {"DynamoDB::Table", "SQS::Queue", "Lambda::Function", "Logs::LogGroup"}
    return [
        resource.logical_id
        for resource in resources.template.resources.values()
        if resource.type.removeprefix("AWS::") in types
    ]


def test_functions_may_invoke_the_notifier_and_workers_of_operations_and_no_other_but_targets(
    resources: Resources,
) -> None:
    invoking = {right for right in given(resources) if right.action == "lambda:InvokeFunction"}

    notifier = resources.ref("NotifierFunctionAliaslive")
    names = ("Api", "Scheduler", "Notifier", "Sweeper", "Bulk", "Ingest", "StackTimers")
    callers = [f"{name}Role" for name in names]
    expected = {Right(role, "lambda:InvokeFunction", notifier) for role in callers}
    bulk = resources.ref("BulkFunctionAliaslive")
    expected |= {Right(role, "lambda:InvokeFunction", bulk) for role in ("ApiRole", "SweeperRole")}
    assert invoking == expected


def test_the_notifier_reaches_nothing_that_makes_tasks_however_wide_its_list_is(
    emulator: Emulator,
) -> None:
    anything = {"TargetArns": "arn:aws:lambda:*:*:*,arn:aws:sqs:*:*:*"}
    every = {**anything, "IngestBusinesses": "*", "StackTimersAs": "duewheel-write"}
    resources = resources_with(emulator, every)
    notifier = roles_of(resources)["notifier"]
    names = ("ApiFunction", "IngestFunction", "StackTimersFunction")
    arns = [resources.attribute(name, "Arn") for name in names]
    for arn in arns:
        assert notifier.right_to(ActionRequest("lambda:InvokeFunction", arn)) is None
        assert notifier.right_to(ActionRequest("lambda:InvokeFunction", f"{arn}:prod")) is None
        assert (
            notifier.right_to(ActionRequest("lambda:InvokeFunction", f"{arn}-of-others"))
            is not None
        )
    queue = resources.attribute("IngestMessageQueue", "Arn")
    assert notifier.right_to(ActionRequest("sqs:SendMessage", queue)) is None
    assert notifier.right_to(ActionRequest("sqs:SendMessage", f"{queue}-of-others")) is not None


def test_every_function_has_a_role_and_a_log_group_of_its_own(resources: Resources) -> None:
    template = resources.template
    functions = template.functions()
    groups = {f.properties["LoggingConfig"]["LogGroup"]["Ref"] for f in functions}
    roles = {role.name for role in roles_of(resources).values()}
    written = [right for right in given(resources) if right.action == "logs:PutLogEvents"]

    assert len(groups) == len(roles) == len(functions)
    assert {right.role for right in written} == roles
    assert {right.resource for right in written} == {resources.attribute(g, "Arn") for g in groups}


def test_nobody_but_lambda_takes_a_role(resources: Resources) -> None:
    for role in resources.template.of_type("AWS::IAM::Role"):
        (statement,) = role.properties["AssumeRolePolicyDocument"]["Statement"]
        assert statement == {
            "Effect": "Allow",
            "Principal": {"Service": "lambda.amazonaws.com"},
            "Action": "sts:AssumeRole",
        }


@pytest.mark.parametrize("overrides", PARAMETERS)
def test_what_lambda_does_by_a_role_the_role_allows(
    emulator: Emulator, overrides: dict[str, str]
) -> None:
    resources = resources_with(emulator, overrides)
    assert set(used_by_aws(resources)) <= given(resources)


@pytest.mark.parametrize("overrides", [{}, PRIVATE_NETWORK])
def test_only_lambda_makes_interfaces_and_only_for_a_notifier_in_a_private_network(
    emulator: Emulator, overrides: dict[str, str]
) -> None:
    resources = resources_with(emulator, overrides)
    interfaces = {right for right in given(resources) if right.action.startswith("ec2:")}
    functions = {
        function.logical_id: resources.resolve(function.properties).get("VpcConfig")
        for function in resources.template.functions()
    }
    network = {"SubnetIds": ["subnet-01", "subnet-02"], "SecurityGroupIds": ["sg-01"]}

    assert {right.role for right in interfaces} == ({"NotifierRole"} if overrides else set())
    assert functions.pop("NotifierFunction") == (network if overrides else None)
    assert not any(functions.values())
    for action in INTERFACES:
        request = ActionRequest(
            f"ec2:{action}", "arn:aws:ec2:us-east-1:123456789012:network-interface/eni-0"
        )
        assert roles_of(resources)["notifier"].right_to(request) is None


@pytest.mark.parametrize(
    "function", ["api", "scheduler", "notifier", "sweeper", "bulk", "ingest", "stack_timers"]
)
def test_a_key_of_ones_own_serves_tables_and_queues_and_no_function_itself(
    emulator: Emulator, function: str
) -> None:
    every = {"KmsKeyArn": CUSTOMER_KEY, "IngestBusinesses": "*", "StackTimersAs": "duewheel-write"}
    role = roles_with(emulator, every)[function]
    for service, action, is_allowed in (
        ("dynamodb.us-east-1.amazonaws.com", "Decrypt", True),
        ("dynamodb.us-east-1.amazonaws.com", "GenerateDataKey", False),
        ("sqs.us-east-1.amazonaws.com", "Decrypt", True),
        ("sqs.us-east-1.amazonaws.com", "GenerateDataKey", True),
        ("", "Decrypt", False),
        ("", "GenerateDataKey", False),
        ("dynamodb.us-east-1.amazonaws.com", "Encrypt", False),
    ):
        right = role.right_to(ActionRequest(f"kms:{action}", CUSTOMER_KEY, via=service))
        assert (right is not None) == is_allowed, (service, action)


def test_without_the_list_index_nobody_has_a_right_to_it(emulator: Emulator) -> None:
    for choice, is_there in (("on", True), ("off", False)):
        rights = given(resources_with(emulator, {"ListIndex": choice}))
        assert any(r.resource.endswith("/by_business") for r in rights) == is_there


def test_a_right_that_nothing_used_is_named(emulator: Emulator) -> None:
    everything = given(resources_with(emulator, EVERYTHING))
    (topics,) = [arn for arn in ALLOWED if ":sns:" in arn]
    needless = Right("NotifierRole", "sns:Publish", topics)

    assert needless in everything
    assert unused(everything) == []
    assert unused(everything - {needless}) == [needless]


def test_a_policy_that_is_not_understood_is_no_right(emulator: Emulator, tmp_path: Any) -> None:
    text = TEMPLATE.read_text(encoding="utf-8")
    for wrong in ("dynamodb:*", "dynamodb:Get*"):
        path = tmp_path / "template.yaml"
        path.write_text(text.replace("Action: dynamodb:Query", f"Action: {wrong}", 1))
        template = load_template(path)
        resources = create_resources(template, boto3.client("dynamodb"), boto3.client("sqs"))
        with pytest.raises(Exception, match="not understood in a policy"):
            roles_of(resources)


# ---------------------------------------------------------------- records of the Registry

RECORDS = {
    "an API key": registry_keys.api_key("k"),
    "a business with its secrets": registry_keys.business("orders"),
    "who changed an API key": registry_keys.changes("api-key", "k"),
    "who changed a business": registry_keys.changes("business", "orders"),
}
WRITES = ("PutItem", "UpdateItem", "DeleteItem")


@each_case("function", ["notifier", "ingest", "scheduler", "sweeper", "bulk", "stack_timers"])
@each_case("record", RECORDS)
def test_no_function_but_the_api_writes_who_may_call_and_with_which_secrets(
    resources: Resources, function: str, record: str
) -> None:
    registry = resources.attribute("Registry", "Arn")
    role = roles_of(resources)[function]
    for write in WRITES:
        request = ActionRequest(f"dynamodb:{write}", registry, (RECORDS[record],))
        assert role.right_to(request) is None, write


def test_the_api_writes_them_all(resources: Resources) -> None:
    role = roles_of(resources)["api"]
    registry = resources.attribute("Registry", "Arn")
    for record in RECORDS.values():
        assert role.right_to(ActionRequest("dynamodb:UpdateItem", registry, (record,))) is not None


def test_one_forbidden_record_refuses_a_transaction_of_a_function_that_may_write_the_other(
    resources: Resources,
) -> None:
    table = resources.ref("Registry")
    parts = [
        {"Update": {"TableName": table, "Key": key}}
        for key in (registry_keys.health("orders"), registry_keys.api_key("k"))
    ]
    with pytest.raises(ClientError):
        must_allow(
            roles_of(resources)["notifier"],
            "dynamodb",
            "TransactWriteItems",
            {"TransactItems": parts},
        )
    assert len(taken_refusals()) == 1


# ---------------------------------------------------------------- secrets of businesses

READS = ("GetItem", "BatchGetItem", "Query", "Scan", "ConditionCheckItem", "PartiQLSelect")
RETURNS = ("PutItem", "UpdateItem", "DeleteItem")  # the item that was there
WITH_PARTIQL = ("PartiQLInsert", "PartiQLUpdate", "PartiQLDelete")
MAY = {"api": ["BatchWriteItem"], "notifier": ["GetItem"]}


def allowed(role: Role, table: str) -> list[str]:
    every = (*READS, *RETURNS, *WITH_PARTIQL, "BatchWriteItem")
    return [
        action
        for action in every
        if role.right_to(ActionRequest(f"dynamodb:{action}", table)) is not None
    ]


def test_the_api_puts_secrets_and_only_the_notifier_reads_them(emulator: Emulator) -> None:
    resources = resources_with(emulator, EVERYTHING)
    table = resources.attribute("Secrets", "Arn")
    for function, role in roles_of(resources).items():
        assert allowed(role, table) == MAY.get(function, []), function


def test_no_policy_of_the_account_lets_another_principal_read_secrets(resources: Resources) -> None:
    """As AdministratorAccess would, and a role of a function that is given more by mistake."""
    table = resources.attribute("Secrets", "Arn")
    actions = (*READS, *RETURNS, *WITH_PARTIQL, "BatchWriteItem")
    anything = Statement("Allow", tuple(f"dynamodb:{one}" for one in actions), (table,), {})

    def given_anything(role: str) -> Role:
        statements = (anything, *table_policies(resources))
        return Role("R", role, "arn:aws:lambda:us-east-1:1:function:f", statements, {}, {})

    for role in ("arn:aws:iam::123456789012:role/Admin", resources.attribute("ApiRole", "Arn")):
        assert allowed(given_anything(role), table) == ["BatchWriteItem"]
    notifier = given_anything(resources.attribute("NotifierRole", "Arn"))
    assert set(allowed(notifier, table)) == set(actions)
