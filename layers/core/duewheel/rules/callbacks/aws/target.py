"""A target of AWS: the declaration of its module, and how requests name its resources.

The declaration determines all else: validation, the stored form, what answers show, the allow-list
of the deployment, the call through the SDK and the API document. A resource is in the deployment's
own Region, where its clients are. A callback that passes has a form that AWS accepts, and the
notifier has the right to make it.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Raw, Struct
from msgspec.structs import asdict, replace

from duewheel.rules.callbacks.allowed_targets import AllowedTargets
from duewheel.rules.callbacks.outcome import Outcome
from duewheel.rules.callbacks.payload_encoding import NOT_IN_A_MESSAGE, TaskData
from duewheel.rules.callbacks.timeouts import timeout_from, timeout_said
from duewheel.rules.callbacks.types import AwsCallback
from duewheel.rules.fields import RequestBody, decode, invalid, joined_path
from duewheel.rules.refusals import TargetNotEnabled

# Of the API document.
MESSAGE_TEXT: dict[str, Any] = {
    "type": "string",
    "minLength": 1,
    "not": {"pattern": r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]"},
}
ARN = re.compile(r"arn:([a-z-]+):([a-z]+):([a-z0-9-]+):([0-9]{12}):(.+)")


class AwsTarget(Struct, frozen=True, kw_only=True):
    """`body`: the callback of a request, whose `type` names the target. `read` and `members`: all
    of a callback but its time-out. `kind`: what is before the name in an ARN. `operation`: of the
    SDK's client, which takes what `request` returns. `accepted_codes`: errors by which AWS says
    that it has accepted this very call before. `stop_codes`: errors that another attempt would meet
    again."""

    body: type[RequestBody]
    callback: type[AwsCallback]
    read: Callable[[Any, AllowedTargets, str], AwsCallback]
    members: Callable[[Any], dict[str, Any]] = asdict
    service: str
    kind: str = ""
    action: str
    client: str
    operation: str
    request: Callable[[Any, TaskData], dict[str, Any]]
    outcome: Callable[[Mapping[str, Any], int], Outcome]
    accepted_codes: tuple[str, ...] = ()
    stop_codes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return str(self.callback.__struct_config__.tag)

    def shown(self, callback: AwsCallback) -> RequestBody:
        """In the form of a request."""
        timeout = {"timeout_seconds": timeout_said(callback.timeout_seconds)}
        return self.body(**self.members(callback) | timeout)

    def callback_from(self, body: Raw, allowed: AllowedTargets, path: str) -> AwsCallback:
        if not allowed.has(self.service):
            where = joined_path(path, "type")
            raise TargetNotEnabled(
                f"{where}: this deployment does not deliver to {self.name}. "
                f"Its template parameter TargetArns names no resource of {self.service}.",
                where,
            )
        read: Any = decode(body, self.body, path)
        timeout_seconds = timeout_from(read, allowed, path)
        return replace(self.read(read, allowed, path), timeout_seconds=timeout_seconds)

    def named(self, text: str, where: str, allowed: AllowedTargets) -> tuple[str, str]:
        """Name and ARN of a resource that is given by either. A name alone is one of this
        account."""
        if not text.startswith("arn:"):
            return text, allowed.scope.arn(self.service, f"{self.kind}{text}")
        found = ARN.fullmatch(text)
        is_known = found and (found[1], found[2]) == (allowed.scope.partition, self.service)
        if not found or not is_known or not found[5].startswith(self.kind):
            like = allowed.scope.arn(self.service, f"{self.kind}NAME")
            raise invalid(where, f"is no ARN like {like}.")
        check_region(found[3], where, allowed)
        return found[5].removeprefix(self.kind), text

    def check_covered(self, arn: str, where: str, allowed: AllowedTargets) -> None:
        if not allowed.cover(arn):
            raise TargetNotEnabled(
                f"{where}: this deployment may not deliver to {arn}. "
                "Its template parameter TargetArns does not cover it.",
                where,
            )


def check_region(region: str, where: str, allowed: AllowedTargets) -> None:
    if region != allowed.scope.region:
        raise invalid(where, f"must be in {allowed.scope.region}, as this deployment is.")


def check_not_own(arn: str, where: str, allowed: AllowedTargets) -> None:
    """The notifier's policy permits these for its own work, so IAM would not refuse them."""
    if allowed.is_own(arn):
        raise TargetNotEnabled(
            f"{where}: {arn} is this deployment's own, to which no task is delivered.", where
        )


def line(text: str, length_max: int, where: str) -> str:
    message_text(text, where)
    if len(text) > length_max or not text.isprintable():
        raise invalid(where, f"must be 1 to {length_max} printable characters.")
    return text


def message_text(text: str, where: str) -> str:
    if not text or NOT_IN_A_MESSAGE.search(text):
        raise invalid(where, "is empty, or has a character that no message may hold.")
    return text


def status_of(answer: Mapping[str, Any]) -> int:
    status: int = answer["ResponseMetadata"]["HTTPStatusCode"]
    return status
