"""The body of a change: what is named is changed, what is absent stays."""

from duewheel.rules.allowed_targets import HTTP_ALONE, AllowedTargets
from duewheel.rules.callback_request import callback_from
from duewheel.rules.change import Change
from duewheel.rules.refusals import MalformedBody
from duewheel.rules.task_fields import Fields
from duewheel.rules.task_request import DUE_FIELDS, due_ms_from, payload_from

CHANGE_FIELDS = (*DUE_FIELDS, "payload", "callback")


def change_request(body: str, now_ms: int, allowed: AllowedTargets = HTTP_ALONE) -> Change:
    fields = Fields.of(body)
    fields.refuse_unknown(CHANGE_FIELDS)
    if not fields.members:
        raise MalformedBody(f"A change names at least one of {', '.join(CHANGE_FIELDS)}.")
    changes_due = any(name in fields for name in DUE_FIELDS)
    return Change(
        due_ms=due_ms_from(fields, now_ms) if changes_due else None,
        callback=callback_from(fields.nested("callback"), allowed)
        if "callback" in fields
        else None,
        sets_payload="payload" in fields,
        payload=payload_from(fields),
    )
