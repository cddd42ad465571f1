"""A business in an answer: the settings that hold, and which of them are its own."""

from typing import Annotated, Literal

from msgspec import UNSET, Struct, UnsetType

from duewheel.interface.callbacks.callback_view import (
    CallbackView,
    ShownOnOutcome,
    callback_view,
    on_outcome_view,
)
from duewheel.interface.http import Answer, encoded
from duewheel.rules.businesses.flow import FlowBody
from duewheel.rules.businesses.lanes import BusinessLane
from duewheel.rules.businesses.requests import StatusList
from duewheel.rules.businesses.settings import Business, Own
from duewheel.rules.callbacks.answers import KeepAnswersBody, shown_keep_answers
from duewheel.rules.callbacks.retry import Retry, number_said, shown_retry
from duewheel.rules.delivery.usage import Usage
from duewheel.rules.fields import Count, Cursor, Instant, says
from duewheel.rules.instants import rfc3339, rfc3339_or_none
from duewheel.rules.names import BizType, FlowKey
from duewheel.rules.priority import PriorityField
from duewheel.workflows.businesses.read import Seen, SeenWithUsage

_SETTINGS = Own.__struct_fields__


class BreakerView(Struct):
    host: str
    since: Instant
    until: Instant


class CallRateView(Struct):
    free_in_ms: Annotated[Count, says("Until the next free turn.")]
    waiting: Annotated[Count, says("About how many tasks have places in its line.")]


class CreateRateView(Struct):
    taken: Annotated[Count, says("Of those that may come at once.")]
    all_free_in_ms: Annotated[Count, says("Until none of them is taken.")]


class PermitsView(Struct):
    used: Count
    waiting: Count


class UsageView(Struct, kw_only=True):
    """How much of its limits a business uses; null where it has no limit."""

    calls: CallRateView | None
    creates: CreateRateView | None
    calls_in_flight: PermitsView | None
    dispatch_lag_seconds: Annotated[
        Count, says("Of the whole service: how far dispatching is behind.")
    ]
    oldest_open_seconds: (
        Annotated[Count, says("Of the whole service: the age of the oldest open place.")] | None
    )


class BusinessView(Struct, kw_only=True):
    biz_type: BizType
    version: Count
    callback: CallbackView
    retry: Retry
    retention_days: Count
    timeout_seconds: float
    allowed_hosts: tuple[str, ...] | None
    trusted_origins: tuple[str, ...] | None
    retry_statuses: StatusList
    stop_statuses: StatusList
    calls_per_second: float | None
    calls_in_flight: Count | None
    creates_per_second: float | None
    signing_secrets: Annotated[list[str], says("By their last four characters.")] | None
    paused: bool
    lane: Annotated[BusinessLane, says("By what was observed of its calls.")]
    secrets: Annotated[list[str], says("By their names alone.")] | None
    tolerance_seconds: Count
    priority: PriorityField
    flow: FlowBody | None
    paused_flow_keys: list[FlowKey]
    keep_answers: KeepAnswersBody | None
    on_outcome: ShownOnOutcome | None
    breakers: list[BreakerView]
    own: Annotated[
        list[Literal[_SETTINGS]],  # type: ignore[valid-type]
        says("What is set, and no default; `paused` while it is."),
    ]
    created_at: Annotated[Instant, says("Null, as `updated_at`, without settings.")] | None
    updated_at: Instant | None
    last_task_at: (
        Annotated[Instant, says("The last minute that was counted. Of a read or a list.")]
        | UnsetType
        | None
    ) = UNSET
    usage: Annotated[UsageView, says("Of the call that reads one business.")] | UnsetType = UNSET


class BusinessesView(Struct):
    businesses: list[BusinessView]
    cursor: Cursor


def business_answer(business: Business, now_ms: int, status: int = 200) -> Answer:
    return _answer(business_view(business, now_ms), status)


def read_answer(found: SeenWithUsage, now_ms: int) -> Answer:
    view = seen_view(found.seen, now_ms)
    view.usage = _usage_view(found.usage)
    return _answer(view, 200)


def _answer(view: BusinessView, status: int) -> Answer:
    return Answer(status, encoded(view), headers={"etag": f'"{view.version}"'})


def business_view(business: Business, now_ms: int) -> BusinessView:
    """`now_ms`: observations of its calls expire."""
    own = business.own
    signing, secrets = own.signing_secrets, own.secrets
    return BusinessView(
        biz_type=business.biz_type,
        version=business.version,
        callback=callback_view(business.callback),
        retry=shown_retry(business.retry),
        retention_days=business.retention_days,
        timeout_seconds=number_said(business.timeout_seconds),
        allowed_hosts=own.allowed_hosts,
        trusted_origins=own.trusted_origins,
        retry_statuses=business.statuses.retry,
        stop_statuses=business.statuses.stop,
        calls_per_second=_number(own.calls_per_second),
        calls_in_flight=own.calls_in_flight,
        creates_per_second=_number(own.creates_per_second),
        signing_secrets=None if signing is None else [secret.hint for secret in signing],
        paused=business.paused,
        lane=business.lane_at(now_ms),
        secrets=None if secrets is None else [secret.name for secret in secrets],
        tolerance_seconds=business.tolerance_seconds,
        priority=business.priority,
        flow=None if own.flow is None else own.flow.body,
        paused_flow_keys=list(business.paused_flow_keys),
        keep_answers=None if own.keep_answers is None else shown_keep_answers(own.keep_answers),
        on_outcome=on_outcome_view(own.on_outcome),
        breakers=breaker_views(business),
        own=[name for name in _SETTINGS if getattr(own, name) is not None],
        created_at=rfc3339(business.created_ms) if business.version else None,
        updated_at=rfc3339(business.updated_ms) if business.version else None,
    )


def seen_view(seen: Seen, now_ms: int) -> BusinessView:
    view = business_view(seen.business, now_ms)
    view.last_task_at = rfc3339_or_none(seen.last_task_ms)
    return view


def _usage_view(usage: Usage) -> UsageView:
    return UsageView(
        calls=call_rate_view(usage),
        creates=(
            CreateRateView(creates.taken, creates.free_in_ms)
            if (creates := usage.creates)
            else None
        ),
        calls_in_flight=permits_view(usage),
        dispatch_lag_seconds=usage.dispatch_lag_seconds,
        oldest_open_seconds=usage.oldest_open_seconds,
    )


def breaker_views(business: Business) -> list[BreakerView]:
    return [
        BreakerView(one.host, rfc3339(one.since_ms), rfc3339(one.until_ms))
        for one in business.health.breakers
    ]


def call_rate_view(usage: Usage) -> CallRateView | None:
    return CallRateView(calls.free_in_ms, calls.waiting) if (calls := usage.calls) else None


def permits_view(usage: Usage) -> PermitsView | None:
    return PermitsView(permits.used, permits.waiting) if (permits := usage.permits) else None


def _number(value: float | None) -> float | None:
    return None if value is None else number_said(value)
