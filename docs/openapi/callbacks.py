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
from duewheel.rules.callbacks import aws, http, url
from duewheel.rules.callbacks.aws import INVOCATIONS
from duewheel.rules.callbacks.requests import BODIES, TYPES
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
_ATTRIBUTES = {
    **names_to(text(1)),
    "propertyNames": matching(aws._ATTRIBUTE),
    "maxProperties": aws.ATTRIBUTES_MAX,
}
_MESSAGE: dict[str, Schema] = {
    "group_id": described(
        matching(aws._GROUP_ID), "Needed for FIFO queues and topics, and for no other."
    ),
    "attributes": _ATTRIBUTES,
    "body": _BODY,
}
_ARN_OR_NAME = text(1)

HTTP = body(
    {
        "type": always("http"),
        "url": _URL,
        "method": _METHOD,
        "headers": _HEADERS,
        "body": _BODY,
    }
)
LAMBDA = body(
    {
        "type": always("lambda"),
        "function": _ARN_OR_NAME,
        "invocation": one_of(INVOCATIONS, default=INVOCATIONS[0]),
    },
    ("type", "function"),
)
SQS = body(
    {"type": always("sqs"), "queue_url": matching(aws._QUEUE_URL), **_MESSAGE},
    ("type", "queue_url"),
)
SNS = body(
    {"type": always("sns"), "topic_arn": matching(aws._ARN), **_MESSAGE},
    ("type", "topic_arn"),
)
EVENTBRIDGE = body(
    {
        "type": always("eventbridge"),
        "event_bus": _ARN_OR_NAME,
        "source": text(1, aws.SOURCE_CHARACTERS_MAX),
        "detail_type": text(1, aws.DETAIL_TYPE_CHARACTERS_MAX),
    },
    ("type", "event_bus", "source", "detail_type"),
)

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
_SHOWN_MESSAGE: dict[str, Schema] = {
    "group_id": TEXT,
    "attributes": names_to(TEXT),
    "body": one_of(BODIES),
}
_SOMETIMES = ("group_id", "body")

SCHEMAS: dict[str, Schema] = {
    "HttpCallback": HTTP,
    "LambdaCallback": LAMBDA,
    "SqsCallback": SQS,
    "SnsCallback": SNS,
    "EventBridgeCallback": EVENTBRIDGE,
    "Callback": {
        "description": "`http` where it does not say. What that leaves out is the business's.",
        "oneOf": [
            ref(name)
            for name in (
                "HttpCallback",
                "LambdaCallback",
                "SqsCallback",
                "SnsCallback",
                "EventBridgeCallback",
            )
        ],
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
    "ShownLambdaCallback": shown(
        {"type": always("lambda"), "function": TEXT, "invocation": one_of(INVOCATIONS)}
    ),
    "ShownSqsCallback": shown(
        {"type": always("sqs"), "queue_url": TEXT, **_SHOWN_MESSAGE}, _SOMETIMES
    ),
    "ShownSnsCallback": shown(
        {"type": always("sns"), "topic_arn": TEXT, **_SHOWN_MESSAGE}, _SOMETIMES
    ),
    "ShownEventBridgeCallback": shown(
        {"type": always("eventbridge"), "event_bus": TEXT, "source": TEXT, "detail_type": TEXT}
    ),
    "ShownCallback": {
        "description": "As a request would say it. What is null is left to the business.",
        "oneOf": [
            ref(name)
            for name in (
                "ShownHttpCallback",
                "ShownLambdaCallback",
                "ShownSqsCallback",
                "ShownSnsCallback",
                "ShownEventBridgeCallback",
            )
        ],
    },
}
assert len(SCHEMAS["Callback"]["oneOf"]) == len(TYPES)
