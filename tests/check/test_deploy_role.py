"""The role that deploys has exactly the rights that CloudFormation needs for each resource type.

The schemas of the types, which cfn-lint contains, list these rights.
"""

import json
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from cfnlint.schema import PROVIDER_SCHEMA_MANAGER

from local.aws.template import REGION, load_template, source_of
from tests.support.cases import each_case
from tests.support.rights_in_use import EVERYTHING

ROOT = Path(__file__).parents[2]
ROLE = ROOT / "infra" / "deploy_role.yaml"
NAMED = {
    "StackName": "duewheel-staging",
    "Owner": "me",
    "Repository": "mine",
    "Environment": "staging",
}
KEY = "arn:aws:kms:us-east-1:123456789012:key/0f5a2c9e"
BOUNDARY = "arn:aws:iam::123456789012:policy/bounded"
WHOLE = {"KmsKeyArn": KEY, "PermissionsBoundaryArn": BOUNDARY}
ROLES = "arn:aws:iam::123456789012:role/duewheel-staging-*"
POLICY_CHARACTERS_MAX = 6_144  # of a managed policy, without white space
OTHER_WAYS = [
    {
        **EVERYTHING,
        "Observability": "full",
        "AlarmEmail": "on@call.example",
        "TasksPerDayAlarm": "1",
        "Capacity": "10",
        "DomainName": "timers.example.com",
        "CertificateArn": "arn:aws:acm:us-east-1:123456789012:certificate/0f5a2c9e",
    },
    {"AlarmEmail": "on@call.example"},
]
# Rights of the handlers for features that the template does not use.
UNUSED = {
    "import and replication of tables, streams, insights": """
        dynamodb:DescribeImport dynamodb:ImportTable dynamodb:UpdateContributorInsights
        dynamodb:EnableKinesisStreamingDestination dynamodb:DisableKinesisStreamingDestination
        dynamodb:UpdateKinesisStreamingDestination
        dynamodb:CreateTableReplica dynamodb:AssociateTableReplica
        dynamodb:Scan dynamodb:Query dynamodb:UpdateItem dynamodb:PutItem dynamodb:GetItem
        dynamodb:DeleteItem dynamodb:BatchWriteItem kinesis:DescribeStream kinesis:PutRecords
        kms:ListAliases kms:RevokeGrant logs:CreateLogStream
        logs:DescribeLogStreams logs:PutLogEvents s3:GetObjectMetadata s3:ListBucket""",
    "which IAM does not know: a tag is a POST": "apigateway:TagResource apigateway:UntagResource",
    "APIs and certificates from a bucket": "s3:getObject s3:GetObjectVersion",
    "encryption of a function's variables and filters by a key": """
        kms:Decrypt kms:Encrypt kms:GenerateDataKey""",
    "reserved and provisioned concurrency, file systems, code signing, runtimes of one's own": """
        lambda:PutFunctionConcurrency lambda:DeleteFunctionConcurrency
        elasticfilesystem:DescribeMountTargets s3files:ListMountTargets
        lambda:GetCodeSigningConfig lambda:PutFunctionCodeSigningConfig
        lambda:DeleteFunctionCodeSigningConfig lambda:PutRuntimeManagementConfig
        lambda:PutFunctionScalingConfig lambda:PassCapacityProvider lambda:AssociateRuntimeAlias
        lambda:PutProvisionedConcurrencyConfig lambda:GetProvisionedConcurrencyConfig
        lambda:DeleteProvisionedConcurrencyConfig""",
    "aliases that shift their traffic by and by": """
        codedeploy:CreateDeployment codedeploy:GetDeployment codedeploy:GetDeploymentConfig
        codedeploy:GetDeploymentGroup codedeploy:StopDeployment""",
    "protection, indexes and policies of log groups": """
        logs:GetDataProtectionPolicy logs:PutDataProtectionPolicy logs:DeleteDataProtectionPolicy
        logs:PutIndexPolicy logs:DeleteIndexPolicy logs:DescribeIndexPolicies
        logs:DeleteResourcePolicy
        logs:PutLogGroupDeletionProtection logs:PutBearerTokenAuthentication
        firehose:TagDeliveryStream s3:REST.PUT.OBJECT""",
    "protection of a topic's data": "sns:PutDataProtectionPolicy sns:GetDataProtectionPolicy",
    "scheduled scaling, and scaling by forecast": """
        application-autoscaling:PutScheduledAction application-autoscaling:DeleteScheduledAction
        cloudwatch:GetMetricData""",
    "policies of users and groups, managed ones; the boundary of a role is not removed": """
        iam:AttachRolePolicy iam:DetachRolePolicy
        iam:GetUserPolicy iam:GetGroupPolicy iam:PutUserPolicy iam:PutGroupPolicy
        iam:DeleteUserPolicy iam:DeleteGroupPolicy iam:DeleteRolePermissionsBoundary""",
    "policies of a nested stack": """
        cloudformation:GetStackPolicy cloudformation:SetStackPolicy""",
}
# Used by the SAM CLI, infra/operate/deploy.py and its advice, the resource `Check`, and API Gateway
# to set up access logs.
OTHER_ACTIONS = {
    "cloudformation:CancelUpdateStack",
    "cloudformation:ContinueUpdateRollback",
    "cloudformation:CreateChangeSet",
    "cloudformation:DeleteChangeSet",
    "cloudformation:DescribeChangeSet",
    "cloudformation:DescribeEvents",
    "cloudformation:DescribeStackEvents",
    "cloudformation:ExecuteChangeSet",
    "cloudformation:GetTemplateSummary",
    "cloudformation:ListStackResources",
    "cloudformation:TagResource",
    "lambda:GetAccountSettings",
    "lambda:InvokeFunction",
    "lambda:ListAliases",
    "logs:DeleteLogDelivery",
    "logs:GetLogDelivery",
    "logs:ListLogDeliveries",
    "logs:UpdateLogDelivery",
    "s3:PutObject",
}


def resource_types() -> set[str]:
    """The types of both templates, for any parameters."""
    translated = {
        resource.type
        for parameters in OTHER_WAYS
        for resource in load_template(ROOT / "template.yaml", parameters).resources.values()
    }
    declared = {
        resource["Type"]
        for name in ("template.yaml", "infra/observability.yaml")
        for resource in source_of(ROOT / name)["Resources"].values()
    }
    every = translated | {name for name in declared if "::Serverless::" not in name}
    return {name for name in every if not name.startswith("Custom::")}


def needed_by(type_name: str) -> set[str]:
    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema(REGION, type_name).schema
    handlers = {name: one for name, one in schema["handlers"].items() if name != "list"}
    return {action for handler in handlers.values() for action in handler["permissions"]}


def statements(**parameters: str) -> list[dict[str, Any]]:
    """Those that allow."""
    return [one for one in every_statement(**parameters) if one["Effect"] == "Allow"]


def every_statement(**parameters: str) -> Iterator[dict[str, Any]]:
    template = load_template(ROLE, {**NAMED, **parameters})
    for policy in template.of_type("AWS::IAM::ManagedPolicy"):
        resolved = template.resolve(policy.properties, _Named())
        yield from resolved["PolicyDocument"]["Statement"]


class _Named:
    def ref(self, logical_id: str) -> str:
        return logical_id

    def attribute(self, logical_id: str, name: str) -> str:
        return f"{logical_id}.{name}"


def allowed() -> set[str]:
    return {one for each in statements(**WHOLE) for one in as_list(each["Action"])}


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


UNUSED_ACTIONS = {action for actions in UNUSED.values() for action in actions.split()}
TYPES = sorted(resource_types())


@pytest.mark.parametrize("type_name", TYPES)
def test_the_role_has_the_rights_that_a_resource_of_the_template_needs(type_name: str) -> None:
    assert needed_by(type_name) - UNUSED_ACTIONS - allowed() == set()


def test_the_role_has_no_other_rights() -> None:
    needed = {action for name in TYPES for action in needed_by(name)}
    assert allowed() - needed - OTHER_ACTIONS == set()
    assert allowed() & UNUSED_ACTIONS == set()
    assert UNUSED_ACTIONS - needed == set(), "no type of the template needs these any more"


def test_only_actions_without_resources_or_with_a_condition_are_allowed_on_all_resources() -> None:
    wide = [one for one in statements() if one["Resource"] == "*" and "Condition" not in one]
    actions = {action for one in wide for action in as_list(one["Action"])}
    changing = {name for name in actions if not re.match(r"[\w-]+:(Describe|Get|List)", name)}
    assert changing == {
        "logs:CreateLogDelivery",
        "logs:DeleteLogDelivery",
        "logs:PutResourcePolicy",
        "logs:UpdateLogDelivery",
        "sns:SetSubscriptionAttributes",
        "sns:Unsubscribe",
    }


def test_only_roles_with_the_stacks_name_can_be_written_and_passed() -> None:
    for statement in statements():
        if statement["Action"] == "iam:CreateServiceLinkedRole":
            continue
        if "iam:" in str(statement["Action"]):
            assert statement["Resource"] == ROLES


def test_a_role_without_the_boundary_can_be_neither_made_nor_given_rights() -> None:
    written = {"CreateRole", "PutRolePolicy", "DeleteRolePolicy", "PutRolePermissionsBoundary"}
    for bound in (BOUNDARY, ""):
        (statement,) = [
            one for one in statements(PermissionsBoundaryArn=bound) if "PutRole" in str(one)
        ]
        assert set(statement["Action"]) == {f"iam:{name}" for name in written}
        expected = {"StringEquals": {"iam:PermissionsBoundary": bound}} if bound else None
        assert statement.get("Condition") == expected


def test_every_role_of_the_stack_has_its_boundary() -> None:
    for bound in (BOUNDARY, ""):
        given = {**OTHER_WAYS[0], "PermissionsBoundaryArn": bound}
        template = load_template(ROOT / "template.yaml", given)
        bounds = {
            template.resolve(one.properties, _Named()).get("PermissionsBoundary", "")
            for one in template.of_type("AWS::IAM::Role")
        }
        assert bounds == {bound}


def test_what_cloudformation_has_tagged_as_another_stacks_is_refused() -> None:
    (refusal,) = [one for one in every_statement() if one["Effect"] == "Deny"]
    tag = "aws:ResourceTag/aws:cloudformation:stack-name"
    own = ["duewheel-staging", "duewheel-staging-ObservabilityStack-*"]
    assert (refusal["NotAction"], refusal["Resource"]) == ("kms:*", "*")
    assert refusal["Condition"] == {
        "Null": {tag: "false"},  # what has no tag is not refused
        "StringNotLike": {tag: [*own, "aws-sam-cli-managed-default"]},
    }


def test_a_key_is_granted_to_services_of_aws_alone() -> None:
    (statement,) = [one for one in statements(**WHOLE) if one["Action"] == "kms:CreateGrant"]
    assert statement["Resource"] == KEY
    assert statement["Condition"] == {"Bool": {"kms:GrantIsForAWSResource": True}}


def test_the_only_function_that_can_be_invoked_is_the_one_that_checks_the_others() -> None:
    (statement,) = [one for one in statements() if "InvokeFunction" in str(one["Action"])]
    assert statement["Action"] == "lambda:InvokeFunction"
    assert statement["Resource"].endswith(":function:duewheel-staging-CheckFunction-*")
    assert "CheckFunction" in load_template(ROOT / "template.yaml").resources


def test_service_linked_roles_that_can_be_created_are_those_of_scaling_and_of_domains() -> None:
    (statement,) = [one for one in statements() if "CreateServiceLinked" in str(one["Action"])]
    services = ("dynamodb.application-autoscaling", "ops.apigateway")
    names = [f"{service}.amazonaws.com" for service in services]
    assert statement["Resource"] == "arn:aws:iam::123456789012:role/aws-service-role/*"
    assert statement["Condition"] == {"StringEquals": {"iam:AWSServiceName": names}}


def test_rights_on_layers_and_log_groups_match_the_names_of_the_template() -> None:
    reached = " ".join(str(statement["Resource"]) for statement in statements())
    template = load_template(ROOT / "template.yaml", OTHER_WAYS[0])
    layers = {
        template.resolve(one.properties["LayerName"], _Named())
        for one in template.of_type("AWS::Lambda::LayerVersion")
    }
    assert layers == {"duewheel-core", "duewheel-vendor"}
    assert ":layer:duewheel-staging-*" in reached
    groups = {
        template.resolve(one.properties, _Named()).get("LogGroupName")
        for one in template.of_type("AWS::Logs::LogGroup")
    }
    assert re.findall(r"log-group:(/aws/[\w/-]+/)", reached) == [
        f"{name.rpartition('/')[0]}/".replace("/duewheel/duewheel/", "/duewheel/duewheel-staging/")
        for name in groups - {None}
    ]


def test_only_one_environment_of_one_repository_may_assume_the_role() -> None:
    template = load_template(ROLE, NAMED)
    (role,) = template.of_type("AWS::IAM::Role")
    (trust,) = template.resolve(role.properties, _Named())["AssumeRolePolicyDocument"]["Statement"]
    issuer = "token.actions.githubusercontent.com"
    assert trust["Condition"]["StringEquals"] == {f"{issuer}:aud": "sts.amazonaws.com"}
    subjects = trust["Condition"]["StringLike"][f"{issuer}:sub"]

    def is_taken(subject: str) -> bool:
        return any(fnmatchcase(subject, pattern) for pattern in subjects)

    assert is_taken("repo:me/mine:environment:staging")
    assert is_taken("repo:me@12/mine@345:environment:staging")
    for other in ("me/mine2", "me2/mine", "me@1/other@2", "me@1/mine2@3", "me2@1/mine@2"):
        assert not is_taken(f"repo:{other}:environment:staging")
    assert not is_taken("repo:me@12/mine@345:environment:prod")
    assert not is_taken("repo:me@12/mine@345:ref:refs/heads/main")


@each_case(
    ("owner", "is_a_name"),
    [("me", True), ("me@12", True), ("me/mine", False), ("*", False), ("me@x", False)],
)
def test_owner_and_repository_are_names_with_or_without_their_ids(
    owner: str, is_a_name: bool
) -> None:
    for name in ("Owner", "Repository"):
        pattern = source_of(ROLE)["Parameters"][name]["AllowedPattern"]
        assert bool(re.fullmatch(pattern, owner)) == is_a_name


def test_the_policies_of_the_role_fit_the_limit_of_iam() -> None:
    template = load_template(ROLE, {**NAMED, **WHOLE})
    for policy in template.of_type("AWS::IAM::ManagedPolicy"):
        document = template.resolve(policy.properties, _Named())["PolicyDocument"]
        assert len(json.dumps(document, separators=(",", ":"))) < POLICY_CHARACTERS_MAX
