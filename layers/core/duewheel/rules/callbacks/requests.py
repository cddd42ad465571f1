"""The `callback` of a request: where and what to deliver, checked before it is stored.

A target that this deployment does not enable, and a resource that it may not reach, are
refused here, with the name of the template parameter that would change it.
"""

from typing import Annotated, Literal

from msgspec import Meta, Raw, Struct

from duewheel.rules.callbacks.allowed_targets import HTTP_ALONE, AllowedTargets
from duewheel.rules.callbacks.aws.registry import BY_TYPE
from duewheel.rules.callbacks.http import HttpCallbackBody, http_callback
from duewheel.rules.callbacks.types import Callback
from duewheel.rules.fields import decode

TYPES = ("http", *BY_TYPE)  # the first is the default

_CALLBACK = {"$ref": "#/components/schemas/Callback"}
_WHOLE = {"$ref": "#/components/schemas/WholeCallback"}
# Which object it is follows from its `type`.
CallbackBody = Annotated[Raw, Meta(extra_json_schema=_CALLBACK)]
CallbackOrNull = Annotated[Raw, Meta(extra_json_schema={"anyOf": [_CALLBACK, {"type": "null"}]})]
WholeCallbackOrNull = Annotated[Raw, Meta(extra_json_schema={"anyOf": [_WHOLE, {"type": "null"}]})]


class _Typed(Struct):
    type: Literal[TYPES] = "http"  # type: ignore[valid-type]


def callback_from(
    body: Raw, allowed: AllowedTargets = HTTP_ALONE, path: str = "callback"
) -> Callback:
    target = BY_TYPE.get(decode(body, _Typed, path).type)
    if target is not None:
        return target.callback_from(body, allowed, path)
    return http_callback(decode(body, HttpCallbackBody, path), path)
