"""The roles of the template's functions, with their policies, and IAM's decisions.

The policy of a table denies, so its statements are among those of every role.

Invariant: only a statement that was understood as a whole allows anything; an unknown element is an
error that names it.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from local.aws.actions import ActionRequest
from local.aws.intrinsics import TemplateError
from local.aws.resources import Resources

_SEGMENTS = 6  # arn, partition, service, Region, account, resource


class Right(NamedTuple):
    """One of the rights of a policy: an action on one of its resources."""

    role: str
    action: str
    resource: str
    condition: str = ""


@dataclass(frozen=True, slots=True)
class Statement:
    effect: str
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    condition: Mapping[str, Mapping[str, tuple[str, ...]]]

    @property
    def condition_text(self) -> str:
        return " and ".join(
            f"{key} is {' or '.join(wanted)}"
            for keys in self.condition.values()
            for key, wanted in keys.items()
        )

    def resource_for(self, request: ActionRequest) -> str | None:
        if request.action not in self.actions:
            return None
        return next((r for r in self.resources if _pattern(r).fullmatch(request.resource)), None)


@dataclass(frozen=True, eq=False, slots=True)
class Role:
    """`sealed_by`, `partition_keys`: keys of tables and queues, by ARN, which rights depend on."""

    name: str  # in the template
    arn: str
    function_arn: str
    statements: tuple[Statement, ...]
    sealed_by: Mapping[str, str]
    partition_keys: Mapping[str, str]
    _decided: dict[tuple[str, str], Right | None] = field(default_factory=dict)

    def right_to(self, request: ActionRequest) -> Right | None:
        """The right that allows it; None if none does."""
        known = (request.action, request.resource)
        if known in self._decided:
            return self._decided[known]
        concerning = [(s, r) for s in self.statements if (r := s.resource_for(request)) is not None]
        holding = [(s, r) for s, r in concerning if self._holds(s, request)]
        is_denied = any(statement.effect == "Deny" for statement, _ in holding)
        right = None
        if holding and not is_denied:
            statement, resource = holding[0]
            right = Right(self.name, request.action, resource, statement.condition_text)
        if not any(statement.condition for statement, _ in concerning):
            self._decided[known] = right
        return right

    def rights(self) -> Iterator[Right]:
        for statement in self.statements:
            if statement.effect == "Allow":
                for action in statement.actions:
                    for resource in statement.resources:
                        if _is_of_its_service(action, resource):
                            yield Right(self.name, action, resource, statement.condition_text)

    def _holds(self, statement: Statement, request: ActionRequest) -> bool:
        return all(
            _OPERATORS[operator](value, wanted)
            for operator, keys in statement.condition.items()
            for key, wanted in keys.items()
            for value in self._known(key, request)
        )

    def _known(self, key: str, request: ActionRequest) -> list[str]:
        match key:
            case "aws:PrincipalArn":
                return [self.arn]
            case "kms:ViaService":
                return [request.via]
            case "lambda:SourceFunctionArn":
                return [self.function_arn]
            case "dynamodb:LeadingKeys":
                if not request.items:
                    raise TemplateError(f"{key} of {request.action} is not understood")
                partition = self.partition_keys[request.resource]
                return [item[partition]["S"] for item in request.items]
        raise TemplateError(f"a condition on {key} is not understood")


def _is_any_of(value: str, wanted: tuple[str, ...]) -> bool:
    return value in wanted


def _is_like_any_of(value: str, wanted: tuple[str, ...]) -> bool:
    return any(re.fullmatch(_translated(one, "."), value) for one in wanted)


def _is_like_none_of(value: str, wanted: tuple[str, ...]) -> bool:
    return not _is_like_any_of(value, wanted)


# Each value of a key is checked by itself. Keys of one value need no "for all values"; those of
# several have it.
_OPERATORS: dict[str, Callable[[str, tuple[str, ...]], bool]] = {
    "StringEquals": _is_any_of,
    "ForAllValues:StringEquals": _is_any_of,
    "StringLike": _is_like_any_of,
    "ForAllValues:StringLike": _is_like_any_of,
    "ArnEquals": _is_like_any_of,
    "ArnNotEquals": _is_like_none_of,
}


def roles_of(resources: Resources) -> dict[str, Role]:
    """The roles by the folder of the function's code."""
    template = resources.template
    sealed_by, partition_keys = _sealed_by(resources), _partition_keys(resources)
    return {
        template.code_folders[function.logical_id].name: _role(
            resources, function.logical_id, sealed_by, partition_keys
        )
        for function in template.functions()
    }


def _role(
    resources: Resources,
    function: str,
    sealed_by: Mapping[str, str],
    partition_keys: Mapping[str, str],
) -> Role:
    properties = resources.template.resources[function].properties
    role = resources.with_arn(resources.resolve(properties["Role"]))
    own = resources.resolve(role.properties)
    if own.get("ManagedPolicyArns"):
        raise TemplateError(f"{role.logical_id} has policies that are not written here")
    policies = list(own.get("Policies", []))
    for beside in resources.template.of_type("AWS::IAM::Policy"):
        policy = resources.resolve(beside.properties)
        if resources.ref(role.logical_id) in policy["Roles"]:
            policies.append(policy)
    statements = [_statement(s) for p in policies for s in p["PolicyDocument"]["Statement"]]
    return Role(
        role.logical_id,
        resources.attribute(role.logical_id, "Arn"),
        resources.attribute(function, "Arn"),
        (*statements, *table_policies(resources)),
        sealed_by,
        partition_keys,
    )


def table_policies(resources: Resources) -> Iterator[Statement]:
    """The policies of the tables. "*" is the table."""
    for table in resources.template.of_type("AWS::DynamoDB::Table"):
        policy = resources.resolve(table.properties.get("ResourcePolicy", {}))
        for source in policy.get("PolicyDocument", {}).get("Statement", []):
            about = (source["Effect"], source.pop("Principal"), source["Resource"])
            if about != ("Deny", "*", "*"):
                raise TemplateError(f"not understood in a policy of a table: {about}")
            arn = resources.attribute(table.logical_id, "Arn")
            yield _statement({**source, "Resource": arn})


def _statement(source: Mapping[str, Any]) -> Statement:
    unknown = set(source) - {"Sid", "Effect", "Action", "Resource", "Condition"}
    condition = {
        operator: {key: tuple(_as_list(wanted)) for key, wanted in keys.items()}
        for operator, keys in source.get("Condition", {}).items()
    }
    unknown |= set(condition) - set(_OPERATORS)
    actions = tuple(_as_list(source["Action"]))
    unknown |= {action for action in actions if "*" in action}
    if unknown or source["Effect"] not in ("Allow", "Deny"):
        raise TemplateError(f"not understood in a policy: {', '.join(sorted(unknown)) or source}")
    return Statement(source["Effect"], actions, tuple(_as_list(source["Resource"])), condition)


def _sealed_by(resources: Resources) -> dict[str, str]:
    """The customer's key of a table or queue, if it has one."""
    sealed = {}
    for resource in resources.template.resources.values():
        match resource.type:
            case "AWS::DynamoDB::Table":
                encrypted = resources.resolve(resource.properties.get("SSESpecification", {}))
                key = encrypted and encrypted.get("KMSMasterKeyId")
            case "AWS::SQS::Queue":
                key = resources.resolve(resource.properties.get("KmsMasterKeyId"))
            case _:
                continue
        if key is not None:
            sealed[resources.attribute(resource.logical_id, "Arn")] = key
    return sealed


def _partition_keys(resources: Resources) -> dict[str, str]:
    return {
        resources.attribute(table.logical_id, "Arn"): key["AttributeName"]
        for table in resources.template.of_type("AWS::DynamoDB::Table")
        for key in table.properties["KeySchema"]
        if key["KeyType"] == "HASH"
    }


def _is_of_its_service(action: str, resource: str) -> bool:
    """IAM never allows an action on a resource of another service, whatever a statement names."""
    return resource == "*" or resource.split(":")[2] == action.partition(":")[0]


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


@cache
def _pattern(resource: str) -> re.Pattern[str]:
    """A wildcard stays within its segment; the last segment, the resource, may hold colons."""
    *head, last = resource.split(":", _SEGMENTS - 1)
    return re.compile(":".join([*(_translated(s, "[^:]") for s in head), _translated(last, ".")]))


def _translated(text: str, anything: str) -> str:
    parts = {"*": f"{anything}*", "?": anything}
    return "".join(parts.get(character) or re.escape(character) for character in text)
