"""A callback in an answer: the members of a request. A null member takes the value of the business.
A header with a secret has its shown form.
"""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from duewheel.rules.callbacks.aws.registry import target_of
from duewheel.rules.callbacks.secret_headers import shown_value
from duewheel.rules.callbacks.timeouts import timeout_said
from duewheel.rules.callbacks.types import AwsCallback, Callback, OnOutcome, Told
from duewheel.rules.fields import RequestBody, says

_SHOWN = {"$ref": "#/components/schemas/ShownCallback"}
# A callback to AWS is shown by the Struct of its request.
CallbackView = Annotated[Any, Meta(extra_json_schema={"oneOf": [_SHOWN, {"type": "null"}]})]

_Headers = Annotated[
    dict[str, str],
    says("Of one that carries a secret its beginning and a digest, which no request takes."),
]


class ShownHttpCallback(Struct, kw_only=True):
    type: Literal["http"]
    url: str | None
    method: str | None
    headers: _Headers
    body: Literal["json", "raw"] | UnsetType = UNSET
    timeout_seconds: float | UnsetType = UNSET


class ShownOnOutcome(Struct, kw_only=True):
    outcomes: tuple[Told, ...]
    callback: Annotated[Any, Meta(extra_json_schema=_SHOWN)]
    with_payload: bool


def on_outcome_view(on_outcome: OnOutcome | None) -> ShownOnOutcome | None:
    if on_outcome is None:
        return None
    return ShownOnOutcome(
        outcomes=on_outcome.outcomes,
        callback=callback_view(on_outcome.callback),
        with_payload=on_outcome.with_payload,
    )


def callback_view(callback: Callback | None) -> ShownHttpCallback | RequestBody | None:
    if callback is None:
        return None
    if isinstance(callback, AwsCallback):
        return target_of(callback).shown(callback)
    return ShownHttpCallback(
        type="http",
        url=callback.url or None,
        method=callback.method or None,
        headers=_joined(callback.headers),
        body="raw" if callback.is_raw else UNSET,
        timeout_seconds=timeout_said(callback.timeout_seconds),
    )


def _joined(headers: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Lines of one name become one line with the same meaning."""
    joined: dict[str, str] = {}
    for name, value in headers:
        shown = shown_value(name, value)
        joined[name] = f"{joined[name]}, {shown}" if name in joined else shown
    return joined
