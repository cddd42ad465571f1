"""Requests on businesses: the body of a PUT, and query strings.

A member sets its field, `null` sets it back to its default, and an absent one changes nothing.
Signing secrets are read as they are given; the workflow seals them.
"""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from duewheel.rules.businesses import trusted_origins
from duewheel.rules.businesses.settings import RETENTION_DAYS_MAX, RETENTION_DAYS_MIN, Defaults
from duewheel.rules.callbacks import outcome, secret_headers
from duewheel.rules.callbacks.allowed_targets import HTTP_ALONE, AllowedTargets
from duewheel.rules.callbacks.http import is_header_value
from duewheel.rules.callbacks.outcome import StatusEntry
from duewheel.rules.callbacks.requests import callback_from
from duewheel.rules.callbacks.retry import retry_from
from duewheel.rules.callbacks.signature import SECRETS_MAX, secret_from
from duewheel.rules.callbacks.types import Callback, HttpCallback
from duewheel.rules.callbacks.url import PATTERNS_MAX, host_pattern
from duewheel.rules.fields import Fields, invalid
from duewheel.rules.query_string import Parameters
from duewheel.rules.wheel.queue_messages import Lane

TIMEOUT_SECONDS_MIN = 0.1
RATE_MIN = 0.001  # one in a thousand seconds
RATE_MAX = 100_000
BURST_MAX = 1_000_000
IN_FLIGHT_MAX = 100  # as many as a page has tasks


def business_change(
    body: str, defaults: Defaults, allowed: AllowedTargets = HTTP_ALONE
) -> dict[str, Any]:
    """Fields of `Own`, each with its value."""
    fields = Fields.of(body)
    read: dict[str, Callable[[str], Any]] = {
        "callback": lambda name: callback_from(fields.nested(name), allowed),
        "retry": lambda name: retry_from(fields.nested(name)),
        "retention_days": lambda name: fields.whole_number(
            name, RETENTION_DAYS_MIN, RETENTION_DAYS_MAX
        ),
        "timeout_seconds": lambda name: fields.number(
            name, TIMEOUT_SECONDS_MIN, defaults.timeout_seconds_max
        ),
        "allowed_hosts": lambda name: _patterns(fields, name, PATTERNS_MAX, host_pattern),
        "trusted_origins": lambda name: _patterns(
            fields, name, trusted_origins.ORIGINS_MAX, trusted_origins.origin_pattern
        ),
        "retry_statuses": lambda name: _statuses(fields, name),
        "stop_statuses": lambda name: _statuses(fields, name),
        "on_dead": lambda name: _whole_callback(fields.nested(name), allowed),
        "calls_per_second": lambda name: fields.number(name, RATE_MIN, RATE_MAX),
        "calls_in_flight": lambda name: fields.whole_number(name, 1, IN_FLIGHT_MAX),
        "creates_per_second": lambda name: fields.number(name, RATE_MIN, RATE_MAX),
        "creates_burst": lambda name: fields.whole_number(name, 1, BURST_MAX),
        "signing_secrets": lambda name: _secrets(fields, name),
        "paused": fields.boolean,
        "lane": lambda name: _lane(fields, name),
        "secrets": lambda name: _named_secrets(fields.nested(name)),
    }
    fields.refuse_unknown(read)
    return {name: None if fields.is_null(name) else read[name](name) for name in fields.members}


def _patterns(
    fields: Fields, name: str, count_max: int, pattern_of: Callable[[str], str]
) -> tuple[str, ...]:
    patterns = []
    elements = fields.elements(name, count_max)
    if not 1 <= len(elements) <= count_max:
        raise fields.invalid(name, f"must have from 1 to {count_max} elements.")
    for index, element in enumerate(elements):
        where, value = f"{fields.where(name)}[{index}]", element.scalar
        if not isinstance(value, str):
            raise invalid(where, "must be a string.")
        try:
            patterns.append(pattern_of(value))
        except ValueError as error:
            raise invalid(where, f"{error}.") from error
    return tuple(dict.fromkeys(patterns))


def _lane(fields: Fields, name: str) -> Lane:
    try:
        return Lane(fields.text(name))
    except ValueError:
        raise fields.invalid(name, f"must be one of {', '.join(Lane)}.") from None


def _secrets(fields: Fields, name: str) -> tuple[str, ...]:
    """A refusal does not repeat the value."""
    elements = fields.elements(name, SECRETS_MAX)
    if not 1 <= len(elements) <= SECRETS_MAX:
        raise fields.invalid(name, f"must have from 1 to {SECRETS_MAX} elements, the newest first.")
    texts = []
    for index, element in enumerate(elements):
        text = element.scalar
        try:
            secret_from(text if isinstance(text, str) else "")
        except ValueError as error:
            raise invalid(f"{fields.where(name)}[{index}]", str(error)) from None
        texts.append(str(text))
    return tuple(texts)


def _named_secrets(fields: Fields) -> dict[str, str | None]:
    """By name; None for one that is taken away. No value is repeated in a refusal."""
    texts: dict[str, str | None] = {}
    for name in fields:
        if not secret_headers.NAME.fullmatch(name):
            raise fields.invalid(
                name, "is no name of a secret: 1 to 63 of a-z, 0-9, '.', '_', '-'."
            )
        text = None if fields.is_null(name) else fields.text(name)
        if text is not None and not _is_secret_value(text):
            most = secret_headers.VALUE_CHARACTERS_MAX
            raise fields.invalid(name, f"must be 1 to {most} characters that a header can have.")
        texts[name] = text
    return texts


def _is_secret_value(text: str) -> bool:
    return 1 <= len(text) <= secret_headers.VALUE_CHARACTERS_MAX and is_header_value(text)


def _statuses(fields: Fields, name: str) -> tuple[StatusEntry, ...]:
    entries: list[StatusEntry] = []
    elements = fields.elements(name, outcome.STATUS_ENTRIES_MAX)
    if len(elements) > outcome.STATUS_ENTRIES_MAX:
        raise fields.invalid(name, f"must have at most {outcome.STATUS_ENTRIES_MAX} elements.")
    for index, element in enumerate(elements):
        value = element.scalar
        if not (isinstance(value, int | str) and outcome.is_status_entry(value)):
            raise invalid(
                f"{fields.where(name)}[{index}]",
                f"must be a status from 300 to 599, or one of {', '.join(outcome.STATUS_CLASSES)}; "
                "2xx is success.",
            )
        entries.append(value)
    return tuple(dict.fromkeys(entries))


def _whole_callback(fields: Fields, allowed: AllowedTargets) -> Callback:
    """Nothing fills in what this one leaves out."""
    callback = callback_from(fields, allowed)
    if isinstance(callback, HttpCallback) and not callback.url:
        raise fields.invalid("url", "is missing.")
    return callback


LIMIT_DEFAULT = 50
LIMIT_MAX = 100


class BusinessesRequest(Struct, frozen=True):
    cursor: str | None
    limit: int


class DeleteRequest(Struct, frozen=True):
    cancels_pending: bool
    cursor: str | None


def businesses_request(query_string: str) -> BusinessesRequest:
    parameters = Parameters.of(query_string, ("cursor", "limit"))
    limit = parameters.whole_number("limit", 1, LIMIT_MAX) or LIMIT_DEFAULT
    return BusinessesRequest(parameters.text("cursor"), limit)


def delete_request(query_string: str) -> DeleteRequest:
    parameters = Parameters.of(query_string, ("cancel_pending", "cursor"))
    cancels = parameters.one_of("cancel_pending", ("true", "false")) == "true"
    return DeleteRequest(cancels, parameters.text("cursor"))
