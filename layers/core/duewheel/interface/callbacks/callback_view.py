"""A callback in an answer: the members of a request. A null member is left to the business. Of a
header with a secret, its shown form.
"""

from duewheel.rules.callbacks.aws.registry import target_of
from duewheel.rules.callbacks.secret_headers import shown_value
from duewheel.rules.callbacks.types import AwsCallback, Callback


def callback_view(callback: Callback) -> dict[str, object]:
    if isinstance(callback, AwsCallback):
        target = target_of(callback)
        return {"type": target.name, **target.shown(callback)}
    return {
        "type": "http",
        "url": callback.url or None,
        "method": callback.method or None,
        "headers": _joined(callback.headers),
        **({"body": "raw"} if callback.is_raw else {}),
    }


def _joined(headers: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Lines of one name as the one that means the same."""
    joined: dict[str, str] = {}
    for name, value in headers:
        shown = shown_value(name, value)
        joined[name] = f"{joined[name]}, {shown}" if name in joined else shown
    return joined
