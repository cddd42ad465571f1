"""The lines that `make deploy` prints before and after it deploys. Pure: facts in, lines out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

HELD_BY_WHEEL = 2  # scheduler and sweeper, for some seconds of each minute
LEFT_TO_CALLERS = 2
NOTIFIERS_MIN = 2  # the minimum of a queue's MaximumConcurrency
LANES = 2  # each with as many notifiers as the bound allows
USUAL_CONCURRENCY = 1_000
CONCURRENCY_QUOTA = "L-B99A9384"  # Lambda's "Concurrent executions"

# Only a create leads to these states: no update of such a stack has ever completed.
NEVER_MADE = ("ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "CREATE_FAILED")


@dataclass(frozen=True, slots=True)
class Alarm:
    name: str
    topics: tuple[str, ...]
    is_silenced: bool = False


@dataclass(frozen=True, slots=True)
class Subscription:
    protocol: str
    endpoint: str
    is_confirmed: bool


@dataclass(frozen=True, slots=True)
class Watched:
    alarms: Sequence[Alarm]
    subscriptions: Mapping[str, Sequence[Subscription]]  # by topic


def obstacle(status: str, stack: str, again: str) -> list[str]:
    """Why a stack in this state cannot be deployed, with a remedy; empty if it can. `again` is the
    command that deploys it."""
    if status in NEVER_MADE:
        return [
            f"The first creation of {stack} failed ({status}). Such a stack can only be deleted.",
            f"To delete it, and create it again: {again} REPLACE_FAILED=yes",
        ]
    if status == "DELETE_FAILED":
        return [
            f"The deletion of {stack} failed (DELETE_FAILED). The reason:",
            f"  aws cloudformation describe-stack-events --stack-name {stack}",
            f"Then delete it: aws cloudformation delete-stack --stack-name {stack}",
        ]
    if status == "UPDATE_ROLLBACK_FAILED":
        return [
            f"The last update of {stack} failed, and so did going back (UPDATE_ROLLBACK_FAILED).",
            f"Go back first: aws cloudformation continue-update-rollback --stack-name {stack}",
        ]
    if status.endswith("_IN_PROGRESS") and status != "REVIEW_IN_PROGRESS":
        return [f"{stack} is being changed at this moment ({status}). Deploy when that is over."]
    return []


def concurrency(limit: int, region: str, parameters: Mapping[str, str], stack: str) -> list[str]:
    """The effect of the account's concurrency on this stack; empty if it is enough."""
    wanted = LANES * int(parameters["NotifierConcurrency"])  # 0: no bound but the account's
    is_bounded = wanted > 0
    if not is_bounded:
        wanted = USUAL_CONCURRENCY - 100
    if wanted + HELD_BY_WHEEL + LEFT_TO_CALLERS <= limit:
        return []
    notifiers = max(NOTIFIERS_MIN, (limit - HELD_BY_WHEEL - LEFT_TO_CALLERS) // LANES)
    return [
        f"Lambda runs at most {limit} functions at once in this account in {region}, "
        f"and the notifiers may take {wanted if is_bounded else 'all of them'}.",
        "Under load the functions throttle each other: callers get 503, calls are minutes late.",
        f"Keep the notifiers below it: put NotifierConcurrency={notifiers}, for each of the "
        f"two lanes, into {stack}.parameters.",
        "Or ask for more: aws service-quotas request-service-quota-increase --service-code lambda "
        f"--quota-code {CONCURRENCY_QUOTA} --desired-value {max(USUAL_CONCURRENCY, wanted + 100)}",
    ]


def access(parameters: Mapping[str, str], stack: str) -> list[str]:
    if parameters["AuthMode"] == "keys":
        return [
            "Access: requests need an API key.",
            f"  The first key: make admin-key STACK={stack}",
        ]
    right = parameters["IamDefault"]
    if right == "none":
        return [
            "Access: only roles and users whose names grant it, such as duewheel-admin or "
            "duewheel-write-orders. Other callers get 403.",
            "  Create such a role (docs/security.md#access), or, to let every caller of the "
            f"account in, put IamDefault=admin into {stack}.parameters, and deploy again.",
        ]
    return [
        "Access: every role and user of the account that has execute-api:Invoke has the right "
        f"{right} on all businesses (IamDefault={right}).",
    ]


def notified(watched: Watched, stack: str) -> list[str]:
    """The alarms, and the subscribers that they notify."""
    if not watched.alarms:
        return ["Alarms: none."]
    names = sorted(alarm.name for alarm in watched.alarms)
    lines = [f"Alarms: {', '.join(names)}"]
    silenced = sorted(alarm.name for alarm in watched.alarms if alarm.is_silenced)
    if silenced:
        lines.append(f"  Their actions are disabled: {', '.join(silenced)}")
    for topic in sorted({topic for alarm in watched.alarms for topic in alarm.topics}):
        lines += _subscribers(topic, watched.subscriptions[topic], stack)
    return lines


def rolled_back_by(configuration: Mapping[str, Any]) -> list[str]:
    """The alarms that undo the next updates of the stack."""
    triggers = configuration.get("RollbackTriggers", [])
    if not triggers:
        return ["Updates: no alarm undoes one yet; the next `make deploy` sets them."]
    names = ", ".join(sorted(each["Arn"].rpartition(":")[2] for each in triggers))
    minutes = configuration.get("MonitoringTimeInMinutes", 0)
    return [f"Updates: undone if an alarm goes off, until {minutes} minutes later: {names}"]


def _subscribers(topic: str, subscriptions: Sequence[Subscription], stack: str) -> list[str]:
    if not subscriptions:
        return [
            f"  They notify {topic}, which has no subscriber. To get a mail: put "
            f"AlarmEmail=you@example.com into {stack}.parameters, and deploy again."
        ]
    lines = [f"  They notify {topic}, and so:"]
    for each in subscriptions:
        pending = "" if each.is_confirmed else " (not confirmed yet: it gets nothing)"
        lines.append(f"    {each.protocol} {each.endpoint}{pending}")
    return lines
