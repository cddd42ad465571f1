"""The `callback` of a request: where and what to deliver, checked before it is stored.

A target that this deployment does not enable, and a resource that it may not reach, are
refused here, with the name of the template parameter that would change it.
"""

from duewheel.rules.callbacks.allowed_targets import HTTP_ALONE, AllowedTargets
from duewheel.rules.callbacks.aws import (
    eventbridge_callback,
    lambda_callback,
    sns_callback,
    sqs_callback,
)
from duewheel.rules.callbacks.http import http_callback
from duewheel.rules.callbacks.types import Callback
from duewheel.rules.fields import Fields

TYPES = ("http", "lambda", "sqs", "sns", "eventbridge")
BODIES = ("json", "raw")


def callback_from(fields: Fields, allowed: AllowedTargets = HTTP_ALONE) -> Callback:
    target = _one_of(fields, "type", TYPES)
    match target:
        case "lambda":
            return lambda_callback(fields, allowed)
        case "eventbridge":
            return eventbridge_callback(fields, allowed)
    is_raw = _one_of(fields, "body", BODIES) == "raw"
    match target:
        case "sqs":
            return sqs_callback(fields, allowed, is_raw=is_raw)
        case "sns":
            return sns_callback(fields, allowed, is_raw=is_raw)
        case _:
            return http_callback(fields, is_raw=is_raw)


def _one_of(fields: Fields, name: str, choices: tuple[str, ...]) -> str:
    """The first is what it is when nothing is said."""
    choice = fields.text(name) if name in fields else choices[0]
    if choice not in choices:
        raise fields.invalid(name, f"must be one of {', '.join(choices)}.")
    return choice
