"""The `callback` of a request: where and what to deliver, checked before it is stored.

A target that this deployment does not enable, and a resource that it may not reach, are
refused here, with the name of the template parameter that would change it.
"""

from duewheel.rules.callbacks.allowed_targets import HTTP_ALONE, AllowedTargets
from duewheel.rules.callbacks.aws.registry import BY_TYPE
from duewheel.rules.callbacks.http import http_callback
from duewheel.rules.callbacks.types import Callback
from duewheel.rules.fields import Fields

TYPES = ("http", *BY_TYPE)  # the first is the default


def callback_from(fields: Fields, allowed: AllowedTargets = HTTP_ALONE) -> Callback:
    target = fields.one_of("type", TYPES)
    if target in BY_TYPE:
        return BY_TYPE[target].callback_from(fields, allowed)
    return http_callback(fields)
