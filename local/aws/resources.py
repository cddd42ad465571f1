"""Creates the template's tables and queues, and resolves references to resources.

Invariant: every resource of the template is made here, emulated by another part of the local stack,
or of a type that is listed as needing nothing; any other stops the start with an error that names
it.

In tests, inside moto:

    @pytest.fixture
    def resources(aws):  # any fixture that has moto running
        template = load_template(REPOSITORY / "template.yaml")
        return create_resources(template, boto3.client("dynamodb"), boto3.client("sqs"))

    def test_settings_come_from_the_template(resources):
        settings = settings_from(resources.environment("api"))
"""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from local.aws.intrinsics import TemplateError
from local.aws.template import ACCOUNT_ID, REGION, STACK_NAME, Resource, Template

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_sqs import SQSClient

PLAYED_BY_OTHERS = {
    "AWS::IAM::Policy": "policies",
    "AWS::IAM::Role": "policies",
    "AWS::Lambda::Function": "functions",
    "AWS::Lambda::Alias": "functions",
    "AWS::Lambda::EventInvokeConfig": "invocations",
    "AWS::Lambda::EventSourceMapping": "queue_poller",
    "AWS::Logs::MetricFilter": "metrics",
    "AWS::Scheduler::Schedule": "schedules",
    "AWS::Events::Rule": "schedules",
    "AWS::ApiGatewayV2::Api": "http_front",
    "AWS::ApiGatewayV2::Stage": "http_front",
    "AWS::ApiGatewayV2::Route": "http_front",
    "AWS::ApiGatewayV2::Integration": "http_front",
    "AWS::ApiGatewayV2::Authorizer": "key_authorizer",
}
NOTHING_NEEDED = {
    "AWS::ApiGatewayV2::ApiMapping",
    "AWS::ApiGatewayV2::DomainName",
    "AWS::ApplicationAutoScaling::ScalableTarget",  # no table is throttled here
    "AWS::ApplicationAutoScaling::ScalingPolicy",
    "AWS::CloudFormation::Stack",
    "AWS::CloudWatch::Alarm",
    "AWS::IAM::ManagedPolicy",
    "AWS::Lambda::LayerVersion",
    "AWS::Lambda::Permission",
    "AWS::Lambda::Version",
    "AWS::Logs::LogGroup",
    "AWS::SNS::Subscription",
    "AWS::SNS::Topic",
    "AWS::SNS::TopicPolicy",
    "AWS::SQS::QueuePolicy",
    "Custom::DuewheelCheck",
}
_TABLE_PROPERTIES = (
    "AttributeDefinitions",
    "KeySchema",
    "BillingMode",
    "GlobalSecondaryIndexes",
    "ProvisionedThroughput",
)
_TABLE_PROPERTIES_WITHOUT_EFFECT = {
    "DeletionProtectionEnabled",
    "PointInTimeRecoverySpecification",
    "ResourcePolicy",  # `policies` holds functions to it
    "SSESpecification",
    "Tags",
}
_QUEUE_ATTRIBUTES = (
    "DelaySeconds",
    "MaximumMessageSize",
    "MessageRetentionPeriod",
    "ReceiveMessageWaitTimeSeconds",
    "VisibilityTimeout",
)
_QUEUE_PROPERTIES_WITHOUT_EFFECT = {
    "KmsMasterKeyId",
    "RedriveAllowPolicy",
    "SqsManagedSseEnabled",
    "Tags",
}


def create_resources(
    template: Template, dynamodb: "DynamoDBClient", sqs: "SQSClient"
) -> "Resources":
    """Make all tables and queues; AWS may be moto or anything the clients point to."""
    resources = Resources(template, dynamodb, sqs)
    resources.create_all()
    return resources


class Resources:
    """Resolves `Ref` and `Fn::GetAtt`; a referenced resource is made first."""

    def __init__(self, template: Template, dynamodb: "DynamoDBClient", sqs: "SQSClient") -> None:
        self.template = template
        self._dynamodb = dynamodb
        self._sqs = sqs
        self._made: dict[str, str] = {}  # logical id: table name or queue URL
        self._makers: dict[str, Callable[[Resource], str]] = {
            "AWS::DynamoDB::Table": self._make_table,
            "AWS::SQS::Queue": self._make_queue,
        }

    def create_all(self) -> None:
        for resource in self.template.resources.values():
            if resource.type in self._makers:
                self.ref(resource.logical_id)
            elif resource.type not in PLAYED_BY_OTHERS and resource.type not in NOTHING_NEEDED:
                raise TemplateError(
                    f"{resource.logical_id} is of type {resource.type}, "
                    "which the local stack does not handle"
                )

    def resolve(self, value: Any) -> Any:
        return self.template.resolve(value, self)

    def environment(self, function: str) -> dict[str, str]:
        """The resolved environment of the function in `functions/<function>`."""
        for resource in self.template.functions():
            if self.template.code_folders[resource.logical_id].name == function:
                variables = resource.properties.get("Environment", {}).get("Variables", {})
                return {name: str(value) for name, value in self.resolve(variables).items()}
        raise TemplateError(f"the template has no function with its code in {function}")

    def table_name(self, logical_id: str) -> str:
        return self.ref(logical_id)

    def queue_url(self, logical_id: str) -> str:
        return self.ref(logical_id)

    def ref(self, logical_id: str) -> str:
        resource = self._declared(logical_id)
        if resource.type == "AWS::Lambda::Alias":
            name = self.resolve(resource.properties["Name"])
            return f"{self.attribute(resource.properties['FunctionName']['Ref'], 'Arn')}:{name}"
        if resource.type not in self._makers:
            return _physical_name(resource)
        if logical_id not in self._made:
            self._made[logical_id] = self._makers[resource.type](resource)
        return self._made[logical_id]

    def attribute(self, logical_id: str, name: str) -> str:
        resource = self._declared(logical_id)
        if name == "Arn":
            self.ref(logical_id)
            service = resource.type.split("::")[1].lower()
            return f"arn:aws:{service}:{REGION}:{ACCOUNT_ID}:{_arn_path(resource)}"
        if name == "QueueName" and resource.type == "AWS::SQS::Queue":
            self.ref(logical_id)
            return _physical_name(resource)
        if name.startswith("Outputs.") and resource.type == "AWS::CloudFormation::Stack":
            return f"{_physical_name(resource)}-{name.removeprefix('Outputs.')}"
        raise TemplateError(f"{logical_id}.{name} of a {resource.type} is not understood")

    def with_arn(self, arn: str) -> Resource:
        for resource in self.template.resources.values():
            if arn.endswith(f":{_arn_path(resource)}"):
                return resource
        raise TemplateError(f"no resource of the template has the ARN {arn}")

    def _declared(self, logical_id: str) -> Resource:
        if logical_id not in self.template.resources:
            raise TemplateError(f"{logical_id} is neither a parameter nor a resource")
        return self.template.resources[logical_id]

    def _make_table(self, resource: Resource) -> str:
        properties = self.resolve(resource.properties)
        time_to_live = properties.pop("TimeToLiveSpecification", None)
        _refuse_unknown(
            resource, set(properties) - set(_TABLE_PROPERTIES) - _TABLE_PROPERTIES_WITHOUT_EFFECT
        )
        name = _physical_name(resource)
        declared = {key: properties[key] for key in _TABLE_PROPERTIES if key in properties}
        for one in (declared, *declared.get("GlobalSecondaryIndexes", ())):
            if "ProvisionedThroughput" in one:  # texts, where they come from a mapping
                units = one["ProvisionedThroughput"]
                one["ProvisionedThroughput"] = {kind: int(units[kind]) for kind in units}
        try:
            made = self._dynamodb.create_table(TableName=name, **declared)
        except self._dynamodb.exceptions.ResourceInUseException:
            return name  # another DynamoDB that keeps its tables may have it from an earlier start
        if made["TableDescription"].get("TableStatus") != "ACTIVE":
            self._dynamodb.get_waiter("table_exists").wait(
                TableName=name, WaiterConfig={"Delay": 1, "MaxAttempts": 30}
            )
        if time_to_live:
            self._dynamodb.update_time_to_live(TableName=name, TimeToLiveSpecification=time_to_live)
        return name

    def _make_queue(self, resource: Resource) -> str:
        properties = self.resolve(resource.properties)
        redrive = properties.pop("RedrivePolicy", None)
        _refuse_unknown(
            resource, set(properties) - set(_QUEUE_ATTRIBUTES) - _QUEUE_PROPERTIES_WITHOUT_EFFECT
        )
        attributes = {key: str(properties[key]) for key in _QUEUE_ATTRIBUTES if key in properties}
        if redrive:
            attributes["RedrivePolicy"] = json.dumps(redrive)
        made = self._sqs.create_queue(
            QueueName=_physical_name(resource),
            Attributes=attributes,  # type: ignore[arg-type]
        )
        return made["QueueUrl"]


def _physical_name(resource: Resource) -> str:
    return f"{STACK_NAME}-{resource.logical_id}"


def _arn_path(resource: Resource) -> str:
    name = _physical_name(resource)
    paths = {
        "AWS::DynamoDB::Table": f"table/{name}",
        "AWS::Lambda::Function": f"function:{name}",
        "AWS::Logs::LogGroup": f"log-group:{name}:*",
    }
    return paths.get(resource.type, name)


def _refuse_unknown(resource: Resource, unknown: set[str]) -> None:
    if unknown:
        raise TemplateError(
            f"{resource.logical_id} has properties the local stack does not handle: "
            + ", ".join(sorted(unknown))
        )
