"""The document of the xTimer interface. A refusal has a code, in an answer like any other."""

from collections.abc import Iterable

from msgspec import Struct

from docs.openapi import problems
from docs.openapi.document import Interface
from docs.openapi.schemas import Schema, Schemas, name_of, plain_schemas_of, ref
from duewheel.interface.http import JSON, Call
from duewheel.rules.refusals import CallbackRefused, NotPermitted, Refusal
from duewheel.xtimer.calls import CALLS
from duewheel.xtimer.views import XTimerRefusalView

_REFUSAL = ref(name_of(XTimerRefusalView))


def _schemas(calls: Iterable[Call]) -> Schemas:
    return {**plain_schemas_of(calls, answers=[XTimerRefusalView]), **problems.SCHEMAS}


def _answer(answer: type[Struct]) -> Schema:
    return {"oneOf": [ref(name_of(answer)), _REFUSAL]}


def _responses(method: str, _: str, call: Call) -> dict[str, Schema]:
    """Problems are what is refused before the call is looked at."""
    may: set[type[Refusal]] = {NotPermitted}
    if method != "GET":
        may.add(CallbackRefused)
    malformed = {"description": "Not to be read", "content": {JSON: {"schema": _REFUSAL}}}
    found = problems.responses_to(may)
    return found if call.answer is None else {**found, "400": malformed}


XTIMER = Interface(
    title="Duewheel for clients of xTimer",
    about="What clients of xTimer send. Unknown members and parameters are passed over. Of a "
    "repeated parameter the first counts; an empty one is none.",
    calls=CALLS,
    tags={"calls": ("xtimer", "The timers of an app, which are those of `/v1/timers`.")},
    schemas=_schemas,
    answer=_answer,
    responses=_responses,
)
