"""The access log: one line for each call that may change something, whatever its status.

It holds nothing of a body, a header or a payload: the path, the values of its placeholders, and the
ids of created items.
"""

from typing import Any

from duewheel.interface.request import Request
from duewheel.interface.response import Answer
from duewheel.interface.routes import Matched

_CHARACTERS_MAX = 128  # as many as a key may have: what is longer is none


def change_line(request: Request, meant: Matched, answer: Answer) -> dict[str, Any] | None:
    """None for a call that only reads, and for an unknown call."""
    if request.method == "GET" or meant.call.on_none:
        return None
    return {
        "action": "change",
        "by": request.caller,
        "call": f"{request.method} {meant.path}",
        **{name: text[:_CHARACTERS_MAX] for name, text in meant.arguments.items()},
        **answer.log_fields,
        "status": answer.status,
    }
