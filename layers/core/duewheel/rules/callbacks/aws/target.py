"""A target of AWS: what its module declares, and how requests name its resources.

All else follows from the declaration: validation, the stored form, what answers show, the
allow-list of the deployment, the call through the SDK and the API document. A resource is in the
deployment's own Region, where its clients are. What passes here is of the form that AWS takes, and
is covered by the rights of the notifier.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from duewheel.rules.callbacks.allowed_targets import AllowedTargets, is_covered
from duewheel.rules.callbacks.outcome import Outcome
from duewheel.rules.callbacks.payload_encoding import NOT_IN_A_MESSAGE, TaskData
from duewheel.rules.callbacks.types import AwsCallback
from duewheel.rules.fields import Fields
from duewheel.rules.refusals import TargetNotEnabled

Schema = dict[str, Any]

ARN = re.compile(r"arn:([a-z-]+):([a-z]+):([a-z0-9-]+):([0-9]{12}):(.+)")


def shown_members(callback: AwsCallback) -> dict[str, object]:
    """The members that a request would have; one that says nothing is left out."""
    return {name: value for name, value in asdict(callback).items() if value is not None}


class AwsTarget(Struct, frozen=True, kw_only=True):
    """`name`: the `type` of a request. `members`: of a request, with their schemas, the address
    first; those in `optional` may be missing, and answers leave out those in `sometimes_shown`.
    `kind`: the text before the name in an ARN. `operation`: of the SDK's client, which takes what
    `request` returns. `item_version`: the `v` of stored tasks that have such a callback, newer than
    that of the releases that do not know it. `accepted_codes`: errors by which AWS says that it has
    accepted this very call before. `stop_codes`: errors that another attempt would meet again."""

    name: str
    callback: type[AwsCallback]
    members: Mapping[str, Schema]
    optional: tuple[str, ...] = ()
    sometimes_shown: tuple[str, ...] = ()
    read: Callable[[Fields, AllowedTargets], AwsCallback]
    shown: Callable[[Any], dict[str, object]] = shown_members
    service: str
    kind: str = ""
    action: str
    parameter: str
    client: str
    operation: str
    request: Callable[[Any, TaskData], dict[str, Any]]
    outcome: Callable[[Mapping[str, Any], int], Outcome]
    item_version: int = 1
    accepted_codes: tuple[str, ...] = ()
    stop_codes: tuple[str, ...] = ()

    @property
    def environment_variable(self) -> str:
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", self.parameter).upper()

    def callback_from(self, fields: Fields, allowed: AllowedTargets) -> AwsCallback:
        if not allowed.arns.get(self.environment_variable):
            raise TargetNotEnabled(
                f"{fields.where('type')}: this deployment does not deliver to {self.name}. "
                f"Its template parameter {self.parameter} names no resource.",
                fields.where("type"),
            )
        fields.refuse_unknown(("type", *self.members))
        return self.read(fields, allowed)

    def named(self, fields: Fields, field: str, allowed: AllowedTargets) -> tuple[str, str]:
        """Name and ARN of a resource that is given by either. A name alone is one of this
        account."""
        text = fields.text(field)
        if not text.startswith("arn:"):
            return text, allowed.scope.arn(self.service, f"{self.kind}{text}")
        found = ARN.fullmatch(text)
        is_known = found and (found[1], found[2]) == (allowed.scope.partition, self.service)
        if not found or not is_known or not found[5].startswith(self.kind):
            like = allowed.scope.arn(self.service, f"{self.kind}NAME")
            raise fields.invalid(field, f"is no ARN like {like}.")
        check_region(fields, field, found[3], allowed)
        return found[5].removeprefix(self.kind), text

    def check_covered(self, fields: Fields, name: str, arn: str, allowed: AllowedTargets) -> None:
        if not is_covered(arn, allowed.arns.get(self.environment_variable, ())):
            raise TargetNotEnabled(
                f"{fields.where(name)}: this deployment may not deliver to {arn}. "
                f"Its template parameter {self.parameter} does not cover it.",
                fields.where(name),
            )


def matching(pattern: re.Pattern[str]) -> Schema:
    return {"type": "string", "pattern": f"^(?:{pattern.pattern})$"}


def choice(choices: Sequence[str]) -> Schema:
    """The first is the default."""
    return {"type": "string", "enum": list(choices), "default": choices[0]}


def check_region(fields: Fields, name: str, region: str, allowed: AllowedTargets) -> None:
    if region != allowed.scope.region:
        raise fields.invalid(name, f"must be in {allowed.scope.region}, as this deployment is.")


def check_not_own(fields: Fields, name: str, arn: str, allowed: AllowedTargets) -> None:
    """The notifier has rights on these for its own work, so no policy would stop it."""
    if allowed.is_own(arn):
        raise TargetNotEnabled(
            f"{fields.where(name)}: {arn} is this deployment's own, to which no task is delivered.",
            fields.where(name),
        )


def line(fields: Fields, name: str, length_max: int) -> str:
    text = message_text(fields, name)
    if len(text) > length_max or not text.isprintable():
        raise fields.invalid(name, f"must be 1 to {length_max} printable characters.")
    return text


def message_text(fields: Fields, name: str) -> str:
    text = fields.text(name)
    if not text or NOT_IN_A_MESSAGE.search(text):
        raise fields.invalid(name, "is empty, or has a character that no message may hold.")
    return text


def status_of(answer: Mapping[str, Any]) -> int:
    status: int = answer["ResponseMetadata"]["HTTPStatusCode"]
    return status
