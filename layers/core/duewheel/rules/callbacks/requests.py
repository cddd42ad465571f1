"""The `callback` of a request: where and what to deliver, checked before it is stored.

A target that this deployment does not enable, and a resource that it may not reach, are refused
here, with the name of the template parameter that would change it.

Of type `http`: a header that passes here can be sent as it is: it is one line of ASCII, and it is
not a header that the delivery sets or that changes how the request is framed. Nor can a receiver
confuse it with such a header: CGI and WSGI treat `webhook_id` as `webhook-id`.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, get_args

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from duewheel.rules.callbacks.allowed_targets import HTTP_ALONE, AllowedTargets
from duewheel.rules.callbacks.aws.registry import BY_TYPE
from duewheel.rules.callbacks.payload_encoding import BodyMode, unsuitable
from duewheel.rules.callbacks.secret_headers import (
    carries_secret,
    is_reference,
    is_shown_form,
    wrong_reference,
)
from duewheel.rules.callbacks.timeouts import TimeoutSeconds, timeout_from
from duewheel.rules.callbacks.types import Callback, HttpCallback, OnOutcome, Told
from duewheel.rules.callbacks.url import URL, URL_LENGTH_MAX, parse_callback_url
from duewheel.rules.fields import (
    RequestBody,
    decode,
    given,
    invalid,
    joined_path,
    says,
    texts_of,
    whole_text,
)
from duewheel.rules.refusals import TooLarge

_FORBIDDEN_HEADERS = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)

_FORBIDDEN_PREFIXES = ("duewheel-", "proxy-", "webhook-")


def in_any_case(text: str) -> str:
    """A pattern of all spellings that a receiver may treat as this name."""
    return "".join("[^0-9A-Za-z]" if c == "-" else f"[{c}{c.upper()}]" for c in text)


_OF_THE_DELIVERY = re.compile(
    "^(?:(?:{})$|{})".format(
        "|".join(map(in_any_case, sorted(_FORBIDDEN_HEADERS))),
        "|".join(map(in_any_case, _FORBIDDEN_PREFIXES)),
    )
)


def is_of_the_delivery(name: str) -> bool:
    return _OF_THE_DELIVERY.search(name) is not None


HEADERS_MAX = 20
HEADERS_BYTES_MAX = 4_096

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"(?:[!-~](?:[!-~ \t]*[!-~])?)?")
# Checked below: the refusal names the header.
_Headers = Annotated[
    dict[
        Annotated[
            str,
            Meta(
                extra_json_schema={
                    "pattern": whole_text(_HEADER_NAME),
                    "not": {"pattern": _OF_THE_DELIVERY.pattern},
                }
            ),
        ],
        Annotated[Any, says(type="string", pattern=whole_text(_HEADER_VALUE))],
    ],
    says(
        f"At most {HEADERS_BYTES_MAX:,} bytes; each name once, whatever its case. A "
        "value may end with `{{secret:NAME}}`, in a header whose values are secret.",
        maxProperties=HEADERS_MAX,
    ),
]
Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
METHODS: Sequence[str] = get_args(Method)


_Url = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=URL_LENGTH_MAX,
        description="With a host that is a name, or an IP address. What is not ASCII is a name by "
        "IDNA.",
        extra_json_schema={"pattern": URL},
    ),
]


class HttpCallbackBody(RequestBody):
    """A missing member has the value of the business."""

    type: Literal["http"] = "http"
    url: _Url | UnsetType = UNSET
    method: Method | UnsetType = UNSET
    headers: _Headers | UnsetType = UNSET
    body: BodyMode | UnsetType = UNSET
    timeout_seconds: TimeoutSeconds | UnsetType = UNSET


def http_callback(body: HttpCallbackBody, allowed: AllowedTargets, path: str) -> HttpCallback:
    url = given(body.url, "")
    if url:
        checked_url(url, joined_path(path, "url"))
    headers = _headers(given(body.headers, {}), joined_path(path, "headers"))
    return HttpCallback(
        url,
        given(body.method, ""),
        headers=headers,
        is_raw=body.body == "raw",
        timeout_seconds=timeout_from(body, allowed, path),
    )


def checked_method(method: str, path: str) -> str:
    if method not in METHODS:
        raise invalid(path, f"must be one of {', '.join(METHODS)}.")
    return method


def checked_url(url: str, path: str) -> str:
    try:
        parse_callback_url(url)
    except ValueError as error:
        raise invalid(path, f"{error}.") from error
    return url


def checked_headers(headers: Sequence[tuple[str, str]], path: str) -> tuple[tuple[str, str], ...]:
    """A name may occur several times; each occurrence is a separate line."""
    if len(headers) > HEADERS_MAX:
        raise invalid(path, f"must have at most {HEADERS_MAX} headers.")
    for name, value in headers:
        where = joined_path(path, name)
        if not _HEADER_NAME.fullmatch(name):
            raise invalid(where, "is no name that a header can have.")
        if is_of_the_delivery(name):
            raise invalid(where, "is a header that the delivery itself decides on.")
        if is_shown_form(value):
            raise invalid(
                where,
                "is what an answer shows of a secret, not the secret itself. Give the value, or "
                "leave callback out of the change, which keeps it.",
            )
        _check_reference(name, value, where)
        if not _HEADER_VALUE.fullmatch(value):
            raise invalid(
                where, "must be visible ASCII with blanks and tabs only between other characters."
            )
    if sum(len(name) + len(value) for name, value in headers) > HEADERS_BYTES_MAX:
        raise TooLarge(f"The headers are larger than {HEADERS_BYTES_MAX:,} bytes.", path)
    return tuple(headers)


def _check_reference(name: str, value: str, where: str) -> None:
    """A header with a reference gets a secret value, so it must be one of the headers whose values
    are not shown."""
    if wrong_reference(value):
        raise invalid(where, "has a {{secret:NAME}} that is malformed, or does not end the value.")
    if is_reference(value) and not carries_secret(name, value):
        raise invalid(where, "refers to a secret, and is no header whose value is hidden.")


HEADER_VALUE = whole_text(_HEADER_VALUE)


def is_header_value(text: str) -> bool:
    return _HEADER_VALUE.fullmatch(text) is not None


def _headers(headers: Mapping[str, object], path: str) -> tuple[tuple[str, str], ...]:
    if len(headers) > HEADERS_MAX:
        raise invalid(path, f"must have at most {HEADERS_MAX} headers.")
    seen: set[str] = set()
    for name in headers:
        if name.lower() in seen:
            reason = "is given more than once, in another spelling."
            raise invalid(joined_path(path, name), reason)
        seen.add(name.lower())
    return checked_headers(texts_of(headers, path), path)


TYPES = ("http", *BY_TYPE)  # the first is the default

_CALLBACK = {"$ref": "#/components/schemas/Callback"}
WHOLE = {"$ref": "#/components/schemas/WholeCallback"}
# `type` selects the class.
CallbackBody = Annotated[Raw, Meta(extra_json_schema=_CALLBACK)]
CallbackOrNull = Annotated[Raw, Meta(extra_json_schema={"anyOf": [_CALLBACK, {"type": "null"}]})]


class _Typed(Struct):
    type: Literal[TYPES] = "http"  # type: ignore[valid-type]


def callback_from(
    body: Raw, allowed: AllowedTargets = HTTP_ALONE, path: str = "callback"
) -> Callback:
    target = BY_TYPE.get(decode(body, _Typed, path).type)
    if target is not None:
        return target.callback_from(body, allowed, path)
    return http_callback(decode(body, HttpCallbackBody, path), allowed, path)


def _whole_callback_from(body: Raw, allowed: AllowedTargets, path: str) -> Callback:
    """It must be complete: it has no defaults."""
    callback = callback_from(body, allowed, path)
    if isinstance(callback, HttpCallback) and not callback.url:
        raise invalid(joined_path(path, "url"), "is missing.")
    return callback


class OnOutcomeBody(RequestBody, kw_only=True):
    """For each of these outcomes a notice calls `callback`."""

    outcomes: Annotated[
        tuple[Told, ...],
        Meta(
            min_length=1,
            description="`missed` is of the runs of a timer, `disabled` of a timer.",
        ),
    ]
    callback: Annotated[Raw, Meta(extra_json_schema=WHOLE)]
    with_payload: Annotated[bool, says("Whether a notice has the payload of its task.")] = False


def on_outcome_from(body: OnOutcomeBody, allowed: AllowedTargets, path: str) -> OnOutcome:
    where = joined_path(path, "callback")
    callback = _whole_callback_from(body.callback, allowed, where)
    if unsuitable(callback, "{}") is not None:
        raise invalid(joined_path(where, "body"), "must be json: a notice is a JSON object.")
    outcomes = tuple(dict.fromkeys(body.outcomes))
    return OnOutcome(outcomes, callback, with_payload=body.with_payload)
