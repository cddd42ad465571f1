"""The settings of a business, and the defaults where it has none.

Settings are read when they are used, never copied into tasks: a change applies to pending tasks,
too.
"""

import math
from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from duewheel.rules.businesses import trusted_origins as origins
from duewheel.rules.businesses.flow import Flow, FlowLimits, merged_keys
from duewheel.rules.businesses.health import NO_HEALTH, BusinessHealth
from duewheel.rules.businesses.lanes import BusinessLane
from duewheel.rules.businesses.rate_limit import RateLimit
from duewheel.rules.callbacks.outcome import StatusEntry, StatusLists, status_lists
from duewheel.rules.callbacks.retry import DEFAULT_RETRY
from duewheel.rules.callbacks.secret_headers import NAMED_SECRETS_MAX, NamedSecret, merged, names_in
from duewheel.rules.callbacks.types import (
    Callback,
    HttpCallback,
    KeepAnswers,
    OnOutcome,
    RetryPolicy,
)
from duewheel.rules.callbacks.url import is_allowed, parse_callback_url
from duewheel.rules.fields import invalid
from duewheel.rules.names import scope_of
from duewheel.rules.priority import Priority

RETENTION_DAYS_MIN = 1
RETENTION_DAYS_MAX = 3_650
RETENTION_SECONDS_MIN = RETENTION_DAYS_MIN * 86_400  # the minimum for ended tasks
RETENTION_SECONDS_MAX = RETENTION_DAYS_MAX * 86_400


class Defaults(Struct, frozen=True):
    """The defaults of the deployment, and its limits."""

    retention_days: int
    timeout_seconds: float
    timeout_seconds_max: float


class SigningSecret(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Only a notifier can read what the id leads to. `hint` is what may be shown of it."""

    hint: str
    secret_id: str


class Own(Struct, frozen=True):
    """The settings that a business has configured. None: the default."""

    callback: Callback | None = None
    retry: RetryPolicy | None = None
    retention_days: int | None = None
    timeout_seconds: float | None = None
    allowed_hosts: tuple[str, ...] | None = None  # None: all
    trusted_origins: tuple[str, ...] | None = None  # beside that of `callback`
    retry_statuses: tuple[StatusEntry, ...] | None = None
    stop_statuses: tuple[StatusEntry, ...] | None = None
    calls_per_second: float | None = None  # None: no limit, here and below
    calls_in_flight: int | None = None
    creates_per_second: float | None = None
    signing_secrets: tuple[SigningSecret, ...] | None = None  # None: callbacks are not signed
    paused: bool | None = None
    secrets: tuple[NamedSecret, ...] | None = None  # by their names, to which headers refer
    tolerance_seconds: int | None = None
    priority: Priority | None = None
    flow: Flow | None = None  # the limits of its flow keys
    paused_flow_keys: tuple[str, ...] | None = None
    keep_answers: KeepAnswers | None = None  # None: only what the history has
    on_outcome: OnOutcome | None = None

    @property
    def secret_ids(self) -> frozenset[str]:
        signing = {one.secret_id for one in self.signing_secrets or ()}
        return frozenset(signing | {one.secret_id for one in self.secrets or ()})


class Business(Struct, frozen=True):
    """`version` 0: never configured. `damaged`: the unreadable attribute of its record."""

    biz_type: str
    defaults: Defaults
    own: Own = Own()
    version: int = 0
    created_ms: int = 0
    updated_ms: int = 0
    damaged: str | None = None
    health: BusinessHealth = NO_HEALTH  # only notifiers read it

    @property
    def is_new(self) -> bool:
        return self.version == 1

    @property
    def callback(self) -> Callback | None:
        return self.own.callback

    @property
    def retry(self) -> RetryPolicy:
        return self.own.retry or DEFAULT_RETRY

    @property
    def retention_days(self) -> int:
        return self.own.retention_days or self.defaults.retention_days

    @property
    def retention_seconds(self) -> int:
        return self.retention_days * 86_400

    @property
    def timeout_seconds(self) -> float:
        """The deployment's limit may be stricter now than when this was set."""
        own = self.own.timeout_seconds or self.defaults.timeout_seconds
        return min(own, self.defaults.timeout_seconds_max)

    @property
    def statuses(self) -> StatusLists:
        return status_lists(self.own.retry_statuses, self.own.stop_statuses)

    @property
    def call_rate(self) -> RateLimit | None:
        per_second = self.own.calls_per_second
        return None if per_second is None else RateLimit(per_second, self.updated_ms)

    @property
    def create_rate(self) -> RateLimit | None:
        per_second = self.own.creates_per_second
        return None if per_second is None else RateLimit(per_second, self.updated_ms)

    @property
    def creates_at_once(self) -> int | None:
        """How many at once after an idle time: as many as in a second, rounded up."""
        per_second = self.own.creates_per_second
        return None if per_second is None else math.ceil(per_second)

    @property
    def tolerance_seconds(self) -> int:
        return self.own.tolerance_seconds or 0

    @property
    def priority(self) -> Priority:
        return self.own.priority or Priority.NORMAL

    @property
    def paused(self) -> bool:
        """Whether its tasks are parked when they fall due."""
        return bool(self.own.paused)

    @property
    def paused_flow_keys(self) -> tuple[str, ...]:
        return self.own.paused_flow_keys or ()

    def pauses(self, flow_key: str | None) -> bool:
        """Whether tasks of this flow key are parked, though the business is not paused."""
        return flow_key is not None and flow_key in self.paused_flow_keys

    def flow_limits(self, flow_key: str) -> FlowLimits | None:
        return None if self.own.flow is None else self.own.flow.limits(flow_key)

    def key_rate(self, flow_key: str | None) -> RateLimit | None:
        flow = self.own.flow
        limits = None if flow is None or flow_key is None else flow.limits(flow_key)
        if flow is None or limits is None or limits.calls_per_second is None:
            return None
        return RateLimit(limits.calls_per_second, flow.set_ms)

    @property
    def keeps_some_order(self) -> bool:
        return self.own.flow is not None and self.own.flow.keeps_some_order

    def keeps_order(self, flow_key: str | None) -> bool:
        """Whether the tasks of this flow key are called one after the other."""
        limits = None if flow_key is None else self.flow_limits(flow_key)
        return limits is not None and limits.in_order

    def in_flight_limits(self, flow_key: str | None) -> dict[str, int]:
        """How many calls may be under way at once, by scope: of the flow key first. A key in order
        needs no permit."""
        found: dict[str, int] = {}
        limits = None if flow_key is None else self.flow_limits(flow_key)
        if limits is not None and limits.calls_in_flight is not None and not limits.in_order:
            found[scope_of(self.biz_type, flow_key)] = limits.calls_in_flight
        if self.own.calls_in_flight is not None:
            found[self.biz_type] = self.own.calls_in_flight
        return found

    def limits_calls(self, flow_key: str | None) -> tuple[bool, bool]:
        """Whether a limit of calls in flight holds for tasks of this flow key, and whether a rate
        does."""
        has_rate = self.call_rate is not None or self.key_rate(flow_key) is not None
        return bool(self.in_flight_limits(flow_key)), has_rate

    def lane_at(self, now_ms: int) -> BusinessLane:
        is_slow = now_ms < self.health.slow_until_ms
        return BusinessLane.SLOW if is_slow else BusinessLane.MAIN

    def unknown_secrets(self, callback: Callback | None) -> list[str]:
        """Names to which it refers and that do not exist."""
        return sorted(names_in(callback) - {one.name for one in self.own.secrets or ()})

    def allows(self, callback: Callback) -> bool:
        """Whether the host of this callback is allowed. The callback must have a URL."""
        hosts = self.own.allowed_hosts
        if hosts is None or not isinstance(callback, HttpCallback):
            return True
        return is_allowed(parse_callback_url(callback.url).host, hosts)

    def trusts(self, callback: HttpCallback) -> bool:
        """Whether the headers of the business's own callback may go to the origin of this one."""
        origin, usual = origins.origin_of(callback.url), self.callback
        if origin is None:  # such a call is never made
            return False
        if isinstance(usual, HttpCallback) and origin == origins.origin_of(usual.url):
            return True
        return origins.is_among(origin, self.own.trusted_origins or ())


def changed(business: Business, change: Mapping[str, Any], now_ms: int) -> Business:
    """The business with these settings changed, checked as a whole. Named secrets and
    paused flow keys that the change does not name stay.

    Its instant never repeats: rate limits compare instants to find the newer settings.
    """
    if (secrets := change.get("secrets")) is not None:
        change = {**change, "secrets": merged(business.own.secrets or (), secrets)}
    if (keys := change.get("paused_flow_keys")) is not None:
        own = business.paused_flow_keys
        change = {**change, "paused_flow_keys": merged_keys(own, keys, "paused_flow_keys")}
    updated_ms = max(now_ms, business.updated_ms + 1)
    if (flow := change.get("flow")) is not None:
        change = {**change, "flow": flow.set_after(business.own.flow, updated_ms)}
    after = replace(
        business,
        own=replace(business.own, **change),
        version=business.version + 1,
        created_ms=business.created_ms or now_ms,
        updated_ms=updated_ms,
    )
    _check_together(after)
    return after


def _check_together(business: Business) -> None:
    if both := business.statuses.in_both:
        raise invalid("stop_statuses", f"has {both[0]}, which is in retry_statuses as well.")
    if len(business.own.secrets or ()) > NAMED_SECRETS_MAX:
        raise invalid("secrets", f"must be at most {NAMED_SECRETS_MAX} together.")
    on_outcome = business.own.on_outcome
    for name, callback in (
        ("callback", business.callback),
        ("on_outcome.callback", None if on_outcome is None else on_outcome.callback),
    ):
        if unknown := business.unknown_secrets(callback):
            raise invalid(f"{name}.headers", f"refers to {unknown[0]}, which is not in secrets.")
        if isinstance(callback, HttpCallback) and callback.url and not business.allows(callback):
            raise invalid(f"{name}.url", "leads to a host that is not among allowed_hosts.")
