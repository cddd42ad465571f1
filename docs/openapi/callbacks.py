"""Callbacks and retries in requests, and callbacks in answers."""

from docs.openapi.schemas import (
    TEXT,
    TRUTH,
    Schema,
    always,
    body,
    described,
    matching,
    names_to,
    nullable,
    number,
    one_of,
    ref,
    shown,
    some,
    text,
    whole,
)
from duewheel.rules.callbacks import http, url
from duewheel.rules.callbacks.aws.registry import AWS_TARGETS
from duewheel.rules.callbacks.aws.target import AwsTarget
from duewheel.rules.callbacks.payload_encoding import BODIES
from duewheel.rules.callbacks.retry import (
    ATTEMPTS_MAX,
    RETRY_AGE_SECONDS_MAX,
    RETRY_DELAY_SECONDS_MAX,
    RETRY_FACTOR_MAX,
    RETRY_FIRST_DELAY_SECONDS_MIN,
)
from duewheel.rules.callbacks.types import RetryPolicy
from duewheel.rules.fields import SECONDS_MIN

_USUAL = RetryPolicy()
_ATTEMPTS = whole(1, ATTEMPTS_MAX)
_DELAY = number(0, RETRY_DELAY_SECONDS_MAX)
_MAX_AGE = number(SECONDS_MIN, RETRY_AGE_SECONDS_MAX)

_BODY = one_of(BODIES, default=BODIES[0])
_HEADERS = {
    **names_to(matching(http._HEADER_VALUE)),
    "propertyNames": matching(http._HEADER_NAME),
    "maxProperties": http.HEADERS_MAX,
}
_SCHEMES = "|".join(
    "".join(f"[{letter}{letter.upper()}]" for letter in scheme) for scheme in url.DEFAULT_PORTS
)
_URL = {**text(1, url.URL_LENGTH_MAX), "pattern": f"^(?:{_SCHEMES})://"}
_METHOD = one_of(http.METHODS)
HTTP = body(
    {
        "type": always("http"),
        "url": _URL,
        "method": _METHOD,
        "headers": _HEADERS,
        "body": _BODY,
    }
)


def _request(target: AwsTarget) -> Schema:
    required = [name for name in target.members if name not in target.optional]
    return body({"type": always(target.name), **target.members}, ("type", *required))


def _answer(target: AwsTarget) -> Schema:
    members = {name: _loose(schema) for name, schema in target.members.items()}
    return shown({"type": always(target.name), **members}, target.sometimes_shown)


def _loose(schema: Schema) -> Schema:
    """Of a member in an answer."""
    if "enum" in schema:
        return {"type": "string", "enum": schema["enum"]}
    return names_to(TEXT) if schema["type"] == "object" else TEXT


RETRY_EXPONENTIAL = body(
    {
        "attempts": {**_ATTEMPTS, "default": _USUAL.attempts_max},
        "first_delay_seconds": number(
            RETRY_FIRST_DELAY_SECONDS_MIN,
            RETRY_DELAY_SECONDS_MAX,
            default=_USUAL.first_delay_seconds,
        ),
        "factor": number(1, RETRY_FACTOR_MAX, default=_USUAL.factor),
        "max_delay_seconds": number(
            RETRY_FIRST_DELAY_SECONDS_MIN, RETRY_DELAY_SECONDS_MAX, default=_USUAL.delay_max_seconds
        ),
        "jitter": {**TRUTH, "default": _USUAL.has_jitter},
        "max_age_seconds": _MAX_AGE,
    }
)
RETRY_LADDER = body(
    {
        "attempts": described(_ATTEMPTS, "By default one more than there are delays."),
        "delays_seconds": some(_DELAY, 1, ATTEMPTS_MAX - 1),
        "max_age_seconds": _MAX_AGE,
    },
    ("delays_seconds",),
)

_SHOWN_HEADERS = described(
    names_to(TEXT),
    "Of one that carries a secret its beginning and a digest, which no request takes.",
)
_NAMES = [target.callback.__name__ for target in AWS_TARGETS]
SCHEMAS: dict[str, Schema] = {
    "HttpCallback": HTTP,
    **{name: _request(target) for name, target in zip(_NAMES, AWS_TARGETS, strict=True)},
    "Callback": {
        "description": "`http` where it does not say. What that leaves out is the business's.",
        "oneOf": [ref(name) for name in ("HttpCallback", *_NAMES)],
    },
    "ExponentialRetry": RETRY_EXPONENTIAL,
    "RetryLadder": RETRY_LADDER,
    "Retry": {"oneOf": [ref("ExponentialRetry"), ref("RetryLadder")]},
    "ShownHttpCallback": shown(
        {
            "type": always("http"),
            "url": nullable(TEXT),
            "method": nullable(TEXT),
            "headers": _SHOWN_HEADERS,
            "body": one_of(BODIES),
        },
        ("body",),
    ),
    **{f"Shown{name}": _answer(target) for name, target in zip(_NAMES, AWS_TARGETS, strict=True)},
    "ShownCallback": {
        "description": "As a request would say it. What is null is left to the business.",
        "oneOf": [ref(f"Shown{name}") for name in ("HttpCallback", *_NAMES)],
    },
}
