"""The one table of limits in docs/api.md, each of its numbers against what the code holds.

A number comes from a constant, from what a refusal says, or from the template. What another
system sets is named in capitals below.
"""

import json
import re
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from duewheel.rules import json_source, names
from duewheel.rules.access import api_keys
from duewheel.rules.access import requests as access_requests
from duewheel.rules.businesses import requests as business_requests
from duewheel.rules.businesses import settings, trusted_origins
from duewheel.rules.callbacks import http as http_callback
from duewheel.rules.callbacks import outcome, retry, secret_headers, signature, url
from duewheel.rules.callbacks.aws import message
from duewheel.rules.callbacks.aws import outcome as aws_outcome
from duewheel.rules.callbacks.types import RetryPolicy
from duewheel.rules.history import changes
from duewheel.rules.refusals import MalformedBody, Refusal
from duewheel.rules.sweep import minute_statistics
from duewheel.rules.tasks import dead_tasks, idempotency, lifecycle, listing
from duewheel.rules.tasks import requests as task_requests
from duewheel.rules.timers import payload_template, schedule_validation
from duewheel.rules.timers import requests as timer_requests
from duewheel.rules.timers.schedule import Schedule
from duewheel.rules.timers.timer import NAME_CHARACTERS_MAX, Rules
from duewheel.rules.timers.xtimer import requests as xtimer_requests
from duewheel.rules.wheel import timing
from duewheel.rules.wheel.addresses import LIST_PARTITIONS, SECOND_MAX
from duewheel.settings import Settings
from duewheel.stores.businesses import cache
from duewheel.targets.http import connection, target
from duewheel.workflows.access import api_keys as issue_keys
from duewheel.workflows.delivery import deliver_entries
from duewheel.workflows.sweep import audit, delete_business
from duewheel.workflows.tasks import key_prefix
from duewheel.workflows.timers import read_xtimer
from local.aws.template import source_of
from tests.support.api_page import first_table

TEMPLATE: Any = source_of(Path(__file__).parents[2] / "template.yaml")

GATEWAY_BODY_MB = 10
GATEWAY_HEADER_BYTES = 10_240
GATEWAY_TOO_MANY = 429
LAMBDA_EVENT_MB = 6
PARTITION_WRITES_A_SECOND = 1_000

NUMBER = re.compile(r"(?<![\w-])\d+(?:,\d{3})*(?:\.\d+)?")  # UTF-8 is none
NOW_MS = 1_800_000_000_000
GOOD = {"biz_type": "orders", "delay_seconds": 5, "callback": {"url": "https://example.com/"}}
NESTED_LEVELS = 900

Numbers = tuple[float, ...]


def numbers(text: str) -> Numbers:
    return tuple(float(number.replace(",", "")) for number in NUMBER.findall(text))


def parameter(name: str) -> Numbers:
    """What it is by default, and from where to where it may be set."""
    declared = TEMPLATE["Parameters"][name]
    return declared["Default"], declared["MinValue"], declared["MaxValue"]


def refused(**members: object) -> Numbers:
    """The bounds that the refusal names."""
    with pytest.raises(Refusal) as refusal:
        task_requests.single_request(json.dumps({**GOOD, **members}), NOW_MS)
    return numbers(refusal.value.detail.partition("must ")[2])


def refused_retry(**members: object) -> Numbers:
    return refused(retry=members)


def lengths(pattern: re.Pattern[str]) -> Numbers:
    taken = [length for length in range(1_000) if pattern.fullmatch("a" * length)]
    assert taken == list(range(taken[0], taken[-1] + 1))
    return taken[0], taken[-1]


DEFAULT = RetryPolicy()
AUTHORIZER = TEMPLATE["Resources"]["KeyAuthorizer"]["Properties"]
SETTINGS = Settings(
    wheel_table="wheel",
    registry_table="registry",
    slice_queue_url="queue",
    slow_queue_url="slow queue",
    notifier_function="notifier",
    signing_key="key",
    stack_id="stack",
)
LISTABLE = [status for status in range(1_000) if outcome.is_status_entry(status)]
STATUSES = LISTABLE[0], LISTABLE[-1]
AHEAD_DAYS = names.AHEAD_DAYS_MAX
PAYLOADS_OF_A_PAGE_MB = listing.PAYLOAD_BYTES_MAX / 1e6
YEAR_MAX = 1970 + SECOND_MAX // 31_556_952  # of 365.2425 days
LEAD_MS = int(TEMPLATE["Mappings"]["Constants"]["Wheel"]["LeadMilliseconds"])

HELD: dict[str, Numbers] = {
    "a request": (GATEWAY_BODY_MB, GATEWAY_HEADER_BYTES),
    "an answer": (TEMPLATE["Resources"]["ApiFunction"]["Properties"]["Timeout"],),
    "requests": (*parameter("ApiRequestsPerSecond"), GATEWAY_TOO_MANY),
    "creates of one business": (LIST_PARTITIONS * PARTITION_WRITES_A_SECOND,),
    "creates for one due second": (PARTITION_WRITES_A_SECOND,),
    "body of a single create, of a change, of a `PUT`": (task_requests.SINGLE_BYTES_MAX / 1024,),
    "body of a batch": (task_requests.BATCH_BYTES_MAX, LAMBDA_EVENT_MB),
    "tasks in a batch": (task_requests.BATCH_TASKS_MAX,),
    "members of an object that is no payload, nor within one": (json_source.MEMBERS_MAX,),
    "nesting of JSON": (NESTED_LEVELS,),
    "`biz_type`": lengths(names.BIZ_TYPE),
    "`key`, `key_prefix`": lengths(names.KEY),
    "API keys of a deployment": (issue_keys.KEYS_MAX, api_keys.KEPT_DAYS),
    "`name` of an API key": (1, access_requests.NAME_CHARACTERS_MAX),
    "`grants` of an API key": (1, access_requests.GRANTS_MAX),
    "`expires_at` of an API key": (AHEAD_DAYS,),
    "`overlap_seconds`": (
        0,
        access_requests.OVERLAP_SECONDS_MAX,
        access_requests.OVERLAP_SECONDS_DEFAULT,
    ),
    "API keys on a page of their list": (
        1,
        access_requests.LIMIT_MAX,
        access_requests.LIMIT_DEFAULT,
    ),
    "a revoked API key": (AUTHORIZER["AuthorizerResultTtlInSeconds"],),
    "idempotency key": (
        *lengths(idempotency._VISIBLE_ASCII),
        idempotency.REMEMBERED_SECONDS / 3600,
    ),
    "payload": (task_requests.PAYLOAD_BYTES_MAX / 1024,),
    "due instant, `max_due_at`": (1970, AHEAD_DAYS),
    "`delay_seconds`": (*refused(delay_seconds=-1), AHEAD_DAYS),
    "`expires_after_seconds`": (*refused(expires_after_seconds=0), AHEAD_DAYS),
    "URL": (url.URL_LENGTH_MAX, url._HOST_LENGTH_MAX),
    "headers": (http_callback.HEADERS_MAX, http_callback.HEADERS_BYTES_MAX),
    "message attributes": (message.ATTRIBUTES_MAX, message.ATTRIBUTES_BYTES_MAX),
    "`group_id`": lengths(message._GROUP_ID),
    "`retry.attempts`": (*refused_retry(attempts=0), DEFAULT.attempts_max),
    "`retry.delays_seconds`": (
        *refused_retry(delays_seconds=[]),
        *refused_retry(delays_seconds=[-1]),
    ),
    "`retry.first_delay_seconds`": (
        *refused_retry(first_delay_seconds=0),
        DEFAULT.first_delay_seconds,
    ),
    "`retry.factor`": (*refused_retry(factor=0), DEFAULT.factor),
    "`retry.max_delay_seconds`": (
        refused_retry(max_delay_seconds=0)[1],
        DEFAULT.delay_max_seconds,
    ),
    "`retry.max_age_seconds`": refused_retry(max_age_seconds=0),
    "settings of a business": (cache.KEPT_MS // 1000,),
    "`retention_days`": (settings.RETENTION_DAYS_MIN, settings.RETENTION_DAYS_MAX),
    "`timeout_seconds`": (
        business_requests.TIMEOUT_SECONDS_MIN,
        SETTINGS.business_defaults.timeout_seconds_max,
    ),
    "`allowed_hosts`, `trusted_origins`": (1, trusted_origins.ORIGINS_MAX),
    "`retry_statuses`, `stop_statuses`": (outcome.STATUS_ENTRIES_MAX, *STATUSES),
    "`calls_per_second`, `creates_per_second`": (
        business_requests.RATE_MIN,
        business_requests.RATE_MAX,
    ),
    "`calls_in_flight`": (1, business_requests.IN_FLIGHT_MAX),
    "`creates_burst`": (1, business_requests.BURST_MAX),
    "`signing_secrets`": (
        1,
        signature.SECRETS_MAX,
        signature.SECRET_BYTES_MIN,
        signature.SECRET_BYTES_MAX,
    ),
    "`secrets`": (secret_headers.NAMED_SECRETS_MAX, 1, secret_headers.VALUE_CHARACTERS_MAX),
    "businesses on a page of their list": (
        1,
        business_requests.LIMIT_MAX,
        business_requests.LIMIT_DEFAULT,
    ),
    "dead tasks on a page": (
        1,
        dead_tasks.LIMIT_MAX,
        dead_tasks.LIMIT_DEFAULT,
        PAYLOADS_OF_A_PAGE_MB,
    ),
    "dead tasks that a page or a redrive looks at": (dead_tasks.LOOKED_AT_MAX,),
    "dead tasks that one call redrives": (dead_tasks.REDRIVEN_MAX,),
    "pending tasks that a `DELETE` of a business cancels in one call": (listing.LIMIT_MAX,),
    "timers that a `DELETE` of a business deletes in one call": (delete_business.TIMERS_AT_ONCE,),
    "tasks on a page of a list": (
        1,
        listing.LIMIT_MAX,
        listing.LIMIT_DEFAULT,
        PAYLOADS_OF_A_PAGE_MB,
    ),
    "tasks that a page of a list looks at": (listing.KEYS_MAX,),
    "keys that a page under a prefix looks at": (
        1,
        task_requests.LIMIT_MAX,
        task_requests.LIMIT_DEFAULT,
        PAYLOADS_OF_A_PAGE_MB,
    ),
    "keys that a cancel under a prefix looks at": (
        key_prefix.KEYS_AT_ONCE,
        PAYLOADS_OF_A_PAGE_MB,
    ),
    "`name` of a timer": (1, NAME_CHARACTERS_MAX),
    "`cron`": (schedule_validation.CRON_CHARACTERS_MAX,),
    "`every_seconds`": (
        1,
        timer_requests.EVERY_SECONDS_MAX,
        timer_requests.EVERY_SECONDS_MAX / 86_400,
    ),
    "`start_at`, `end_at`": (1970, YEAR_MAX),
    "`max_runs`": (1, timer_requests.RUNS_MAX),
    "`jitter_seconds`": (0, timer_requests.JITTER_SECONDS_MAX),
    "`grace_seconds`": (
        0,
        timer_requests.GRACE_SECONDS_MAX,
        Rules("", Schedule()).grace_seconds,
    ),
    "`exclude`": (schedule_validation.EXCLUDE_MAX,),
    "placeholders in a payload": (payload_template.PLACEHOLDERS_MAX,),
    "timers on a page of their list, runs on a page": (
        1,
        timer_requests.LIMIT_MAX,
        timer_requests.LIMIT_DEFAULT,
        PAYLOADS_OF_A_PAGE_MB,
    ),
    "what is ahead": (1, timer_requests.UPCOMING_MAX, timer_requests.UPCOMING_DEFAULT),
    "changes that are kept": (
        changes.KEPT_MAX,
        changes.DELETED_KEPT_SECONDS / 86_400,
        changes.SHOWN_CHARACTERS_MAX,
    ),
    "pages of the xTimer interface": (
        1,
        xtimer_requests.PAGE_SIZE_MAX,
        xtimer_requests.PAGE_SIZE_DEFAULT,
        xtimer_requests.PAGE_SIZE_MAX,
        read_xtimer.LINES_MAX,
        xtimer_requests.RECORDS_MAX,
    ),
    "range of statistics": (minute_statistics.MINUTES_MAX, minute_statistics.KEPT_DAYS),
    "an audit": (audit.SECONDS_MAX, audit.ITEMS_MAX),
    "a change, a run, a cancel": (
        (LEAD_MS + timing.SKEW_MS) / 1000,
        LEAD_MS,
        timing.SKEW_MS / 1000,
    ),
    "a redrive": (lifecycle.ABOUT_TO_GO_MS / 60_000,),
    "a callback": (*parameter("CallbackTimeoutSeconds"), target.CONNECT_SECONDS_MAX),
    "the reply of a callback": (connection.REPLY_BYTES_MAX,),
    "the answer of a function": (aws_outcome.ANSWER_BYTES_MAX,),
    "redirects of a callback": (),
    "`Retry-After`": (retry.RETRY_AFTER_SECONDS_MAX,),
    "callbacks of one notifier at once": (deliver_entries.CALLS_IN_FLIGHT_MAX,),
    "attempts in `history`": (lifecycle.HISTORY_MAX,),
    "`note`, `last_error`": (lifecycle.NOTE_CHARACTERS_MAX,),
    "the record of a task that has ended": parameter("RetentionDays"),
}
LISTED = {what: numbers(limit) for what, limit in first_table("Limits")}


def test_every_limit_of_the_page_is_held_against_the_code() -> None:
    assert sorted(LISTED) == sorted(HELD)


@pytest.mark.parametrize("what", HELD)
def test_the_page_says_what_the_code_holds(what: str) -> None:
    assert LISTED.get(what) == HELD[what]


def test_a_note_is_cut_to_what_the_page_says() -> None:
    assert outcome.NOTE_BYTES_MAX >= lifecycle.NOTE_CHARACTERS_MAX


def test_nesting_is_taken_as_deep_as_the_page_says_and_refused_somewhere_deeper() -> None:
    """In a thread, whose stack is as shallow as that of a function."""
    taken: list[int] = []

    def nest(levels: int) -> None:
        payload = "[" * (levels - 1) + "]" * (levels - 1)
        body = json.dumps(GOOD)[:-1] + f', "payload": {payload}}}'
        try:
            task_requests.single_request(body, NOW_MS)
        except MalformedBody:
            return
        taken.append(levels)

    for levels in (NESTED_LEVELS, 30_000):
        thread = Thread(target=nest, args=[levels])
        thread.start()
        thread.join()
    assert taken == [NESTED_LEVELS]
