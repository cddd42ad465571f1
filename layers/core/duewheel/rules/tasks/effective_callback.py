"""The effective callback: a task's callback, completed by its business at the moment of the call.

Create and change check here that there will be a callback; the notifier gets it here. Both use one
rule, so a refused callback is never called, and an accepted one is called while it is allowed.
"""

import math

from msgspec.structs import replace

from duewheel.rules.businesses.settings import Business
from duewheel.rules.callbacks.outcome import Outcome, Verdict
from duewheel.rules.callbacks.payload_encoding import unsuitable
from duewheel.rules.callbacks.secret_headers import names_in
from duewheel.rules.callbacks.types import Callback, HttpCallback, OnOutcome
from duewheel.rules.fields import invalid
from duewheel.rules.tasks.task import Task

METHOD_DEFAULT = "POST"


def completed(callback: Callback | None, business: Business) -> Callback | None:
    """The callback with the defaults of its business. A callback of another type takes no defaults,
    and one to an origin that the business does not trust takes no headers. None if neither names a
    URL."""
    usual = business.callback
    if callback is None:
        callback = usual
    elif isinstance(callback, HttpCallback) and isinstance(usual, HttpCallback):
        callback = replace(
            callback,
            url=callback.url or usual.url,
            method=callback.method or usual.method,
            timeout_seconds=_timeout(callback, usual),
        )
        if callback.url and business.trusts(callback):
            headers = _with_others(callback.headers, usual.headers)
            callback = replace(callback, headers=headers)
    return whole(callback)


def whole(callback: Callback | None) -> Callback | None:
    """The callback as it is called without defaults; None without a URL."""
    if not isinstance(callback, HttpCallback):
        return callback
    if not callback.url:
        return None
    return replace(callback, method=callback.method or METHOD_DEFAULT)


def timeout_ms(task: Task, business: Business) -> int:
    """How long its call may take: by its callback, as it is completed, or else by the setting of
    its business. The deployment's limit may be stricter now than when this was set."""
    usual = business.callback if task.notice_of is None else None
    callback = task.callback or usual
    own = None if callback is None else _timeout(callback, usual)
    seconds = business.timeout_seconds if own is None else own
    return math.ceil(min(seconds, business.defaults.timeout_seconds_max) * 1000)


def _timeout(callback: Callback, usual: Callback | None) -> float | None:
    seconds = callback.timeout_seconds
    is_completed = isinstance(callback, HttpCallback) and isinstance(usual, HttpCallback)
    return usual.timeout_seconds if seconds is None and usual and is_completed else seconds


def check_callback(callback: Callback | None, payload: str | None, business: Business) -> None:
    """Refuse a callback that could not be made by the current settings."""
    found = completed(callback, business)
    if found is None:
        if callback is None:
            raise invalid("callback", "is missing, and its business has none to fill in.")
        raise invalid("callback.url", "is missing, and its business has none to fill in.")
    if not business.allows(found):
        raise invalid("callback.url", "leads to a host that its business does not allow.")
    if (reason := _unfillable(found, business)) is not None:
        raise invalid("callback.headers", f"{reason}.")
    if (why := unsuitable(found, payload)) is not None:
        raise invalid("payload", why)


def check_on_outcome(on_outcome: OnOutcome | None, business: Business) -> None:
    """Refuse notices that could not be made by the current settings."""
    found = whole(None if on_outcome is None else on_outcome.callback)
    if found is None:
        return
    if not business.allows(found):
        where = "on_outcome.callback.url"
        raise invalid(where, "leads to a host that its business does not allow.")
    if (reason := _unfillable(found, business)) is not None:
        raise invalid("on_outcome.callback.headers", f"{reason}.")


def callback_to_make(task: Task, business: Business) -> Callback | Outcome:
    """The callback to make, or the outcome of an attempt that makes no call."""
    if business.damaged is not None:
        return Outcome(Verdict.RETRY, "the settings of its business cannot be read")
    is_notice = task.notice_of is not None
    found = whole(task.callback) if is_notice else completed(task.callback, business)
    if found is None:
        return Outcome(Verdict.STOP, "neither the task nor its business says where to call")
    if not business.allows(found):
        return Outcome(Verdict.STOP, "host-not-allowed: its business does not allow this host")
    if (reason := _unfillable(found, business, is_own=_is_of_admin(task, business))) is not None:
        return Outcome(Verdict.STOP, f"secret-not-filled-in: {reason}")
    return found


def _is_of_admin(task: Task, business: Business) -> bool:
    """Whether a notice calls what the admin of its business has set, as a whole."""
    usual = business.own.on_outcome
    return task.notice_of is not None and usual is not None and task.callback == usual.callback


def _unfillable(callback: Callback, business: Business, *, is_own: bool = False) -> str | None:
    """Why references to secrets in the headers are not filled in; None if they are."""
    if not isinstance(callback, HttpCallback) or not names_in(callback):
        return None
    if not (is_own or business.trusts(callback)):
        return "refer to a secret of the business, which does not go to this origin"
    if unknown := business.unknown_secrets(callback):
        return f"refer to {unknown[0]}, which is no secret of the business"
    return None


def _with_others(
    headers: tuple[tuple[str, str], ...], usual: tuple[tuple[str, str], ...]
) -> tuple[tuple[str, str], ...]:
    """Names are compared without regard to case."""
    own = {name.lower() for name, _ in headers}
    return (*headers, *((name, value) for name, value in usual if name.lower() not in own))
