"""A business in an answer: the settings that hold, and which of them are its own."""

from duewheel.interface.callbacks.callback_view import callback_view
from duewheel.interface.http import Answer, compact
from duewheel.rules.businesses.health import BusinessHealth
from duewheel.rules.businesses.settings import Business, Own, SigningSecret
from duewheel.rules.callbacks.retry import number_said, retry_members
from duewheel.rules.callbacks.types import Callback
from duewheel.rules.instants import rfc3339

_SETTINGS = Own.__struct_fields__


def business_answer(business: Business, now_ms: int, status: int = 200) -> Answer:
    view = compact(business_view(business, now_ms))
    return Answer(status, view, headers={"etag": etag(business)})


def etag(business: Business) -> str:
    return f'"{business.version}"'


def business_view(business: Business, now_ms: int) -> dict[str, object]:
    """`now_ms`: observations of its calls expire."""
    hosts, trusted = business.own.allowed_hosts, business.own.trusted_origins
    secrets, choice = business.own.secrets, business.lane_at(now_ms)
    return {
        "biz_type": business.biz_type,
        "version": business.version,
        "callback": _callback(business.callback),
        "retry": retry_members(business.retry),
        "retention_days": business.retention_days,
        "timeout_seconds": number_said(business.timeout_seconds),
        "allowed_hosts": None if hosts is None else list(hosts),
        "trusted_origins": None if trusted is None else list(trusted),
        "retry_statuses": list(business.statuses.retry),
        "stop_statuses": list(business.statuses.stop),
        "on_dead": _callback(business.on_dead),
        "calls_per_second": _number(business.own.calls_per_second),
        "calls_in_flight": business.own.calls_in_flight,
        "creates_per_second": _number(business.own.creates_per_second),
        "creates_burst": business.creates_burst,
        "signing_secrets": _hints(business.own.signing_secrets),
        "paused": business.paused,
        "lane": choice.lane,
        "lane_by": choice.by,
        "secrets": None if secrets is None else [secret.name for secret in secrets],
        "breakers": _breakers(business.health),
        "own": [name for name in _SETTINGS if getattr(business.own, name) is not None],
        "created_at": rfc3339(business.created_ms),
        "updated_at": rfc3339(business.updated_ms),
    }


def _breakers(health: BusinessHealth) -> list[dict[str, object]]:
    return [
        {
            "host": breaker.host,
            "since": rfc3339(breaker.since_ms),
            "until": rfc3339(breaker.until_ms),
        }
        for breaker in health.breakers
    ]


def _hints(secrets: tuple[SigningSecret, ...] | None) -> list[str] | None:
    return None if secrets is None else [secret.hint for secret in secrets]


def _number(value: float | None) -> float | int | None:
    return None if value is None else number_said(value)


def _callback(callback: Callback | None) -> dict[str, object] | None:
    return None if callback is None else callback_view(callback)
