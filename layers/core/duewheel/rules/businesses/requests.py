"""Requests on businesses: the body of a PUT, and query strings.

A member sets its field, `null` sets it back to its default, and an absent one changes nothing.
Signing secrets are read as they are given; the workflow stores them.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from duewheel.rules.businesses import trusted_origins
from duewheel.rules.businesses.flow import (
    IN_FLIGHT_MAX,
    PAUSED_MAX,
    FlowBody,
    checked_limit,
    flow_from,
    paused_keys_from,
)
from duewheel.rules.businesses.rate_limit import RATE_MAX, RATE_MIN
from duewheel.rules.businesses.settings import (
    RETENTION_DAYS_MAX,
    RETENTION_DAYS_MIN,
    Defaults,
)
from duewheel.rules.callbacks import outcome, secret_headers
from duewheel.rules.callbacks.allowed_targets import HTTP_ALONE, AllowedTargets
from duewheel.rules.callbacks.answers import KeepAnswersBody, keep_answers_from
from duewheel.rules.callbacks.outcome import StatusEntry
from duewheel.rules.callbacks.requests import (
    HEADER_VALUE,
    CallbackOrNull,
    OnOutcomeBody,
    callback_from,
    is_header_value,
    on_outcome_from,
)
from duewheel.rules.callbacks.retry import Retry, retry_policy
from duewheel.rules.callbacks.signature import (
    SECRET,
    SECRET_BYTES_MAX,
    SECRET_BYTES_MIN,
    SECRETS_MAX,
    secret_from,
)
from duewheel.rules.callbacks.timeouts import TimeoutSeconds, checked_timeout
from duewheel.rules.callbacks.url import (
    HOST_PATTERN,
    ORIGIN_PATTERN,
    PATTERNS_MAX,
    host_pattern,
)
from duewheel.rules.fields import (
    RequestBody,
    decode,
    invalid,
    joined_path,
    members,
    says,
    whole_text,
)
from duewheel.rules.names import FLOW_KEY
from duewheel.rules.priority import PriorityField
from duewheel.rules.query_string import Query
from duewheel.rules.tolerance import ToleranceSeconds

_Rate = Annotated[float, Meta(ge=RATE_MIN, le=RATE_MAX)]
# Checked with a word on pausing.
_CallRate = Annotated[float, says(minimum=RATE_MIN, maximum=RATE_MAX)]
_InFlight = Annotated[int, says(minimum=1, maximum=IN_FLIGHT_MAX)]
_Hosts = Annotated[
    tuple[Annotated[str, says(pattern=HOST_PATTERN)], ...],
    Meta(
        min_length=1,
        max_length=PATTERNS_MAX,
        description="Names or IPv4 addresses, or `*.` and a name for all below it.",
    ),
]
_Origins = Annotated[
    tuple[Annotated[str, says(pattern=ORIGIN_PATTERN)], ...],
    Meta(
        min_length=1,
        max_length=PATTERNS_MAX,
        description="Where the headers of `callback` go, beside the origin of its own URL, such as "
        "`https://api.example.com` or `https://*.example.com`.",
    ),
]
_Status = (
    Annotated[int, says(minimum=300, maximum=599)]
    | Annotated[str, says(enum=list(outcome.STATUS_CLASSES))]
)
StatusList = Annotated[tuple[_Status, ...], Meta(max_length=outcome.STATUS_ENTRIES_MAX)]
_Secrets = Annotated[
    dict[
        Annotated[str, says(pattern=whole_text(secret_headers.NAME))],
        Annotated[
            Any,
            says(
                type=["string", "null"],
                minLength=1,
                maxLength=secret_headers.VALUE_CHARACTERS_MAX,
                pattern=HEADER_VALUE,
            ),
        ],
    ],
    says(
        "By names, to which headers refer as `{{secret:NAME}}`; `null` takes one away. "
        f"At most {secret_headers.NAMED_SECRETS_MAX} together."
    ),
]
_SigningSecrets = Annotated[
    tuple[Annotated[str, says(pattern=whole_text(SECRET))], ...],
    Meta(
        min_length=1,
        max_length=SECRETS_MAX,
        description="The newest first; each `whsec_` and the base64 of "
        f"{SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} random bytes.",
    ),
]
_PausedKeys = Annotated[
    dict[
        Annotated[str, says(pattern=whole_text(FLOW_KEY))],
        Annotated[Any, says(enum=[True, None])],
    ],
    says(
        "Flow keys: `true` pauses the calls of their tasks, `null` resumes them. "
        f"At most {PAUSED_MAX} together."
    ),
]


class BusinessChangeBody(RequestBody):
    """`null` sets a member back to its default. `retry_statuses` and `stop_statuses` have none in
    common. Callbacks go to `allowed_hosts`, and refer to `secrets` that there are."""

    callback: CallbackOrNull | UnsetType = UNSET
    retry: Retry | UnsetType | None = UNSET
    retention_days: (
        Annotated[int, Meta(ge=RETENTION_DAYS_MIN, le=RETENTION_DAYS_MAX)] | UnsetType | None
    ) = UNSET
    timeout_seconds: TimeoutSeconds | UnsetType | None = UNSET
    allowed_hosts: _Hosts | UnsetType | None = UNSET
    trusted_origins: _Origins | UnsetType | None = UNSET
    retry_statuses: StatusList | UnsetType | None = UNSET
    stop_statuses: StatusList | UnsetType | None = UNSET
    calls_per_second: _CallRate | UnsetType | None = UNSET
    calls_in_flight: _InFlight | UnsetType | None = UNSET
    creates_per_second: _Rate | UnsetType | None = UNSET
    signing_secrets: _SigningSecrets | UnsetType | None = UNSET
    secrets: _Secrets | UnsetType | None = UNSET
    tolerance_seconds: ToleranceSeconds | UnsetType | None = UNSET
    priority: PriorityField | UnsetType | None = UNSET
    flow: FlowBody | UnsetType | None = UNSET
    paused_flow_keys: _PausedKeys | UnsetType | None = UNSET
    keep_answers: KeepAnswersBody | UnsetType | None = UNSET
    on_outcome: OnOutcomeBody | UnsetType | None = UNSET


def business_change(
    body: str, defaults: Defaults, allowed: AllowedTargets = HTTP_ALONE
) -> dict[str, Any]:
    """Fields of `Own`, each with its value."""
    read = decode(body, BusinessChangeBody)
    checked: dict[str, Callable[[Any, str], Any]] = {
        "callback": lambda raw, where: callback_from(raw, allowed, where),
        "retry": retry_policy,
        "calls_per_second": partial(_call_limit, "calls_per_second"),
        "calls_in_flight": partial(_call_limit, "calls_in_flight"),
        "timeout_seconds": lambda seconds, where: checked_timeout(
            seconds, defaults.timeout_seconds_max, where
        ),
        "allowed_hosts": lambda texts, where: _patterns(texts, host_pattern, where),
        "trusted_origins": lambda texts, where: _patterns(
            texts, trusted_origins.origin_pattern, where
        ),
        "retry_statuses": _statuses,
        "stop_statuses": _statuses,
        "signing_secrets": _signing_secrets,
        "secrets": _named_secrets,
        "flow": flow_from,
        "paused_flow_keys": paused_keys_from,
        "keep_answers": keep_answers_from,
        "on_outcome": lambda body, where: on_outcome_from(body, allowed, where),
    }
    return {
        name: checked[name](value, name) if name in checked and value is not None else value
        for name, value in members(read).items()
    }


def _call_limit(name: str, value: float, where: str) -> float:
    return checked_limit(name, value, where, "to stop its calls, pause the business")


def _patterns(texts: Iterable[str], pattern_of: Callable[[str], str], path: str) -> tuple[str, ...]:
    patterns = []
    for index, text in enumerate(texts):
        try:
            patterns.append(pattern_of(text))
        except ValueError as error:
            raise invalid(f"{path}[{index}]", f"{error}.") from error
    return tuple(dict.fromkeys(patterns))


def _signing_secrets(texts: tuple[str, ...], path: str) -> tuple[str, ...]:
    """A refusal does not repeat the value."""
    for index, text in enumerate(texts):
        try:
            secret_from(text)
        except ValueError as error:
            raise invalid(f"{path}[{index}]", str(error)) from None
    return texts


def _named_secrets(secrets: Mapping[str, object], path: str) -> dict[str, str | None]:
    """By name; None for one that is removed. A refusal repeats no value."""
    texts: dict[str, str | None] = {}
    for name, value in secrets.items():
        where = joined_path(path, name)
        if not secret_headers.NAME.fullmatch(name):
            raise invalid(where, "is no name of a secret: 1 to 63 of a-z, 0-9, '.', '_', '-'.")
        if value is not None and not isinstance(value, str):
            raise invalid(where, "must be a string.")
        if value is not None and not _is_secret_value(value):
            most = secret_headers.VALUE_CHARACTERS_MAX
            raise invalid(where, f"must be 1 to {most} characters that a header can have.")
        texts[name] = value
    return texts


def _is_secret_value(text: str) -> bool:
    return 1 <= len(text) <= secret_headers.VALUE_CHARACTERS_MAX and is_header_value(text)


def _statuses(values: Iterable[StatusEntry], path: str) -> tuple[StatusEntry, ...]:
    for index, value in enumerate(values):
        if not outcome.is_status_entry(value):
            raise invalid(
                f"{path}[{index}]",
                f"must be a status from 300 to 599, or one of {', '.join(outcome.STATUS_CLASSES)}; "
                "2xx is success.",
            )
    return tuple(dict.fromkeys(values))


class ProbeBody(RequestBody):
    host: Annotated[str, says("As an open breaker names it.")]


class DeleteQuery(Query):
    cancel_pending: Literal["true", "false"] = "false"
    cursor: str | None = None

    @property
    def cancels_pending(self) -> bool:
        return self.cancel_pending == "true"
