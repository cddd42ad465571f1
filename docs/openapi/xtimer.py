"""The xTimer interface: answers are 200 with a code, or 400 where nothing could be read."""

from docs.openapi.operation import Kind, Operation, Parameter
from docs.openapi.schemas import (
    COUNT,
    INSTANT,
    TEXT,
    Schema,
    always,
    described,
    names_to,
    nullable,
    ref,
    shown,
    some,
    text,
    whole,
)
from duewheel.interface.timers.xtimer_view import MALFORMED, SUCCESS
from duewheel.rules.callbacks.http import METHODS
from duewheel.rules.timers.schedule_validation import CRON_CHARACTERS_MAX
from duewheel.rules.timers.timer import NAME_CHARACTERS_MAX
from duewheel.rules.timers.xtimer import requests

_ID: Schema = whole(1, requests._ID_BEYOND - 1)
_LINES = names_to(nullable(some(TEXT, 0, requests._HEADER_VALUES_MAX)))


def _given(properties: dict[str, Schema], required: tuple[str, ...]) -> Schema:
    """Members nobody knows are passed over here."""
    return {"type": "object", "properties": properties, "required": list(required)}


def _succeeded(**members: Schema) -> Schema:
    done = shown({"code": always(0), "msg": always(SUCCESS), **members})
    return {"oneOf": [done, ref("XTimerRefusal")]}


_SCHEMAS: dict[str, Schema] = {
    "XTimerRefusal": shown(
        {
            "code": described(
                {"type": "integer", "not": always(0)},
                f"The status that `/v1` would have answered; {MALFORMED} with HTTP 400.",
            ),
            "msg": TEXT,
        }
    ),
    "XTimerDefinition": _given(
        {
            "app": text(1),
            "name": text(1, NAME_CHARACTERS_MAX),
            "cron": text(1, CRON_CHARACTERS_MAX),
            "notifyHTTPParam": _given(
                {
                    "url": text(1),
                    "method": described(text(1), f"{', '.join(METHODS)}, in any case."),
                    "header": nullable(_LINES),
                    "body": nullable(TEXT),
                },
                ("url", "method"),
            ),
        },
        ("app", "name", "cron", "notifyHTTPParam"),
    ),
    "XTimerNamed": _given({"id": _ID, "app": text(1)}, ("id", "app")),
    "XTimerTimer": shown(
        {
            "id": _ID,
            "app": TEXT,
            "name": TEXT,
            "status": described({"enum": [1, 2]}, "1: inactive, 2: active."),
            "cron": TEXT,
            "notifyHTTPParam": nullable(
                shown(
                    {
                        "url": TEXT,
                        "method": TEXT,
                        "header": names_to(some(TEXT)),
                        "body": TEXT,
                    }
                )
            ),
        }
    ),
    "XTimerRecord": shown(
        {
            "id": COUNT,
            "app": TEXT,
            "timerID": _ID,
            "output": TEXT,
            "runTimer": INSTANT,
            "costTime": COUNT,
            "status": described(
                {"enum": [0, 1, 2, 3]},
                "0: not called yet, 1: tried again, 2: delivered, 3: all else.",
            ),
        }
    ),
}

_APP = Parameter("app", text(1), required=True)
_PAGING = (
    Parameter("pageIndex", {"type": "integer", "default": 1}),
    Parameter(
        "pageSize",
        {"type": "integer", "default": requests.PAGE_SIZE_DEFAULT},
        description=f"A larger one than {requests.PAGE_SIZE_MAX} counts as that.",
    ),
)


def _operation(
    name: str, answer: Schema, body: Schema | None = None, *parameters: Parameter
) -> Operation:
    return Operation(name, {200: answer}, body=body, parameters=parameters, in_codes=True)


XTIMER = Kind(
    "xtimer",
    "What clients of xTimer send, on the same timers.",
    {
        ("POST", "/api/timer/v1/def"): _operation(
            "xtimer_create", _succeeded(id=_ID), ref("XTimerDefinition")
        ),
        ("GET", "/api/timer/v1/def"): _operation(
            "xtimer_read",
            _succeeded(data=ref("XTimerTimer")),
            None,
            Parameter("id", _ID, required=True),
            _APP,
        ),
        ("DELETE", "/api/timer/v1/def"): _operation(
            "xtimer_delete", _succeeded(), ref("XTimerNamed")
        ),
        ("POST", "/api/timer/v1/enable"): _operation(
            "xtimer_enable", _succeeded(), ref("XTimerNamed")
        ),
        ("POST", "/api/timer/v1/unable"): _operation(
            "xtimer_unable", _succeeded(), ref("XTimerNamed")
        ),
        ("GET", "/api/timer/v1/defs"): _operation(
            "xtimer_list",
            _succeeded(data=some(ref("XTimerTimer")), total=COUNT),
            None,
            _APP,
            *_PAGING,
        ),
        ("GET", "/api/task/v1/records"): _operation(
            "xtimer_records",
            _succeeded(data=some(ref("XTimerRecord")), total=COUNT),
            None,
            Parameter("timerID", _ID, required=True),
            Parameter("app", TEXT),
            *_PAGING,
        ),
    },
    _SCHEMAS,
)
