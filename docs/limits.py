"""The limits of docs/api.md, a line each. The limit of a field has the words of its refusal;
what another system sets is a number here."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from duewheel.interface.wheel.wheel_view import OPEN_PLACES_SHOWN
from duewheel.rules import labels
from duewheel.rules.access import requests as access_requests
from duewheel.rules.access.api_keys import KEPT_DAYS
from duewheel.rules.bulk import requests as bulk_requests
from duewheel.rules.bulk.open_ones import OPEN_IN_ALL_MAX, OPEN_OF_CALLER_MAX
from duewheel.rules.bulk.operation import IDS_MAX, KEPT_SECONDS, OPEN_MAX
from duewheel.rules.businesses import requests as business_requests
from duewheel.rules.businesses.flow import PAUSED_MAX, PREFIXES_MAX
from duewheel.rules.callbacks import outcome, retry, url
from duewheel.rules.callbacks import requests as callbacks
from duewheel.rules.callbacks.answers import HEADERS_MAX as ANSWER_HEADERS_MAX
from duewheel.rules.callbacks.aws import message
from duewheel.rules.callbacks.completion import WITHIN_SECONDS_MAX
from duewheel.rules.callbacks.outcome import HEADER_CHARACTERS_MAX
from duewheel.rules.callbacks.secret_headers import NAMED_SECRETS_MAX
from duewheel.rules.callbacks.types import KEPT_BYTES_MAX
from duewheel.rules.history import changes
from duewheel.rules.names import AHEAD_DAYS_MAX
from duewheel.rules.query_string import LIMIT_DEFAULT, LIMIT_MAX
from duewheel.rules.refusals import Refusal
from duewheel.rules.sweep import minute_statistics
from duewheel.rules.tasks import idempotency, lifecycle, listing
from duewheel.rules.tasks import requests as task_requests
from duewheel.rules.tasks.long_work import REPORT_BYTES_MAX, RESULT_BYTES_MAX
from duewheel.rules.timers import requests as timer_requests
from duewheel.rules.timers.schedule import Schedule
from duewheel.rules.timers.timer import Rules
from duewheel.rules.wheel.addresses import LIST_PARTITIONS, SHARDS_MAX
from duewheel.rules.wheel.open_places import OPEN_PLACES_MAX
from duewheel.rules.wheel.sharding import SLICE_ENTRIES
from duewheel.rules.wheel.timing import SKEW_MS
from duewheel.settings import CALLBACK_TIMEOUT_SECONDS, Settings
from duewheel.stores.businesses.cache import KEPT_MS
from duewheel.targets.http.connection import REPLY_BYTES_MAX
from duewheel.targets.http.target import CONNECT_SECONDS_MAX
from duewheel.workflows.access.api_keys import KEYS_MAX
from duewheel.workflows.businesses.all_businesses import BUSINESSES_AT_ONCE
from duewheel.workflows.delivery.deliver_entries import CALLS_IN_FLIGHT_MAX
from duewheel.workflows.sweep import audit
from duewheel.workflows.sweep.delete_business import TIMERS_AT_ONCE
from duewheel.workflows.sweep.read_overview import DEATHS_MAX, DEATHS_OF_MAX
from duewheel.workflows.tasks.key_prefix import KEYS_AT_ONCE
from duewheel.xtimer import requests as xtimer
from duewheel.xtimer.reads import LINES_MAX
from local.aws.template import source_of

NESTING_TAKEN = 900  # as test_tables.py shows
PARTITION_WRITES = 1_000  # of DynamoDB, a second
NEW_TABLE_WRITES = 4_000  # of DynamoDB on demand, a second

TEMPLATE: Any = source_of(Path(__file__).parents[1] / "template.yaml")
RESOURCES = TEMPLATE["Resources"]
AUTHORIZER = RESOURCES["KeyAuthorizer"]["Properties"]
CONSTANTS = TEMPLATE["Mappings"]["Constants"]
LEAD_MS = int(CONSTANTS["Wheel"]["LeadMilliseconds"])
ROUTES = RESOURCES["ApiStage"]["Properties"]["RouteSettings"]
REPORTS, REPORTS_AT_ONCE = ROUTES["POST /v1/tasks/{task_id}/complete"].values()
SETTINGS = Settings(
    wheel_table="wheel",
    registry_table="registry",
    slice_queue_url="queue",
    slow_queue_url="slow queue",
    notifier_function="notifier",
    secrets_table="secrets",
    stack_id="stack",
)

NOW_MS = 1_800_000_000_000
USUAL = retry.DEFAULT_RETRY
PAYLOADS = f"about {listing.PAYLOAD_BYTES_MAX / 1e6:g} MB of payloads"


Members = dict[str, Any]


def said_of(read: Callable[[str], object], usual: Members, wrong: Members) -> str:
    """What the refusal says that the wrong members must be, or have."""
    try:
        read(json.dumps(usual | wrong))
    except Refusal as refusal:
        must = re.fullmatch(r".* must (?:be|have) (.*?)\.?", refusal.detail)
        if must and re.split(r"\W", refusal.field or "")[0] in wrong:
            return re.sub(r"\d{4,}", lambda number: f"{int(number[0]):,}", must[1])
    raise ValueError(f"not refused for {wrong}")


def task(**members: Any) -> str:
    usual = {"biz_type": "orders", "delay_seconds": 5}
    return said_of(lambda body: task_requests.single_request(body, NOW_MS), usual, members)


def retried(**members: Any) -> str:
    return task(retry=members)


def operation(**members: Any) -> str:
    usual = {"biz_type": "orders", "action": "cancel", "filter": {}}
    return said_of(lambda body: bulk_requests.operation_request(body, NOW_MS), usual, members)


def business(**members: Any) -> str:
    defaults = SETTINGS.business_defaults
    return said_of(lambda body: business_requests.business_change(body, defaults), {}, members)


def timer(**members: Any) -> str:
    usual = {"biz_type": "orders", "name": "close"}
    return said_of(lambda body: timer_requests.new_timer(body, NOW_MS), usual, members)


def api_key(**members: Any) -> str:
    usual = {"name": "orders", "grants": [{"right": "read", "businesses": "*"}]}
    return said_of(lambda body: access_requests.new_api_key(body, NOW_MS), usual, members)


def overlap(**members: Any) -> str:
    return said_of(access_requests.overlap_seconds, {}, members)


def parameter(name: str, unit: str = "") -> str:
    declared = TEMPLATE["Parameters"][name]
    least, most = declared["MinValue"], declared["MaxValue"]
    return f"{declared['Default']:,}{unit} (`{name}`, {least:,} to {most:,})"


def visible(pattern: re.Pattern[str]) -> str:
    taken = [length for length in range(1_000) if pattern.fullmatch("a" * length)]
    return f"{taken[0]} to {taken[-1]} visible ASCII characters"


CREATES = f"{LIST_PARTITIONS * PARTITION_WRITES:,} a second where the list index is on"
OF_ONE_SECOND = f"""no limit on their number: there is a shard for each {SLICE_ENTRIES} that are \
expected, up to {SHARDS_MAX:,}, and each takes about {PARTITION_WRITES:,} writes a second. The \
table limits them all: a new one takes {NEW_TABLE_WRITES:,} a second"""
CUT_OFF = f"until {(LEAD_MS + SKEW_MS) / 1000:g} s before the second"
PAGE = f"1 to {LIMIT_MAX} (`limit`), by default {LIMIT_DEFAULT}"

CALLS = f"""
a request | 10 MB, and 10,240 bytes of request line and headers (API Gateway)
an answer | comes within {RESOURCES["ApiFunction"]["Properties"]["Timeout"]} s, or API Gateway \
answers in its place
requests | {parameter("ApiRequestsPerSecond", " a second")}; beyond that API Gateway answers 429
reports of receivers on long work | {REPORTS} a second, {REPORTS_AT_ONCE} at once, \
of each of the three calls
body of such a report | {REPORT_BYTES_MAX // 1024} KiB
`result` of a task | {RESULT_BYTES_MAX:,} bytes
`duewheel-complete-within`, `complete_within_seconds` | 1 to {WITHIN_SECONDS_MAX:,} s
creates of one business | {CREATES}
tasks of one due second | {OF_ONE_SECOND}
body of a single create, of a change, of a `PUT` | {task_requests.SINGLE_BYTES_MAX // 1024} KiB
body of a batch | {task_requests.BATCH_BYTES_MAX:,} bytes, and 6 MB once API Gateway has written \
it as a JSON string for Lambda: text full of quotation marks reaches this first
tasks in a batch | {task_requests.BATCH_TASKS_MAX}
nesting of JSON | {NESTING_TAKEN} levels at least; how many more depends on the Python that runs it
idempotency key | {visible(idempotency._VISIBLE_ASCII)}, remembered for \
{idempotency.REMEMBERED_SECONDS // 3600} hours
a revoked API key | is refused within {AUTHORIZER["AuthorizerResultTtlInSeconds"]} s
API keys of a deployment | {KEYS_MAX:,}, those that ended within {KEPT_DAYS} days included
API keys on a page of their list | {PAGE}
businesses on a page of their list | {PAGE}
tasks on a page of a list | {PAGE}, and {PAYLOADS}
tasks that a page of a list looks at | {listing.KEYS_MAX}
businesses that a page of a list of all looks at | {BUSINESSES_AT_ONCE}
businesses on a page of the overview | {PAGE}
deaths that an overview looks at | the latest {DEATHS_MAX} of each of {DEATHS_OF_MAX} businesses
keys that a page under a prefix looks at | {PAGE}, and {PAYLOADS}
keys that a cancel under a prefix looks at | {KEYS_AT_ONCE}, and {PAYLOADS}
dead tasks on a page | {PAGE}, and {PAYLOADS}
dead tasks that a page looks at | {listing.KEYS_MAX}
ids of a bulk operation | {IDS_MAX}
open bulk operations | {OPEN_MAX} of a business, {OPEN_OF_CALLER_MAX} of a caller, \
{OPEN_IN_ALL_MAX} in all; each is kept for \
{KEPT_SECONDS // 86_400} days after its end
`per_second` of a bulk operation | {operation(per_second=0)}
bulk operations, or refused tasks of one, on a page | {PAGE}
pending tasks that a `DELETE` of a business cancels in one call | {LIMIT_MAX}
timers that a `DELETE` of a business deletes in one call | {TIMERS_AT_ONCE}
timers on a page of their list, runs on a page | {PAGE}, and {PAYLOADS}
what is ahead | 1 to {timer_requests.UPCOMING_MAX} occurrences (`count`), by default \
{timer_requests.UPCOMING_DEFAULT}
range of statistics | {minute_statistics.MINUTES_MAX:,} minutes; they are kept for \
{minute_statistics.KEPT_DAYS} days
open places that are listed | {OPEN_PLACES_SHOWN}, of {OPEN_PLACES_MAX:,} that there can be
an audit | {audit.SECONDS_MAX:,} seconds or about {audit.ITEMS_MAX:,} items a call
"""

XTIMER = f"""
timers or records on a page | 1 to {xtimer.PAGE_SIZE_MAX} (`pageSize`), by default \
{xtimer.PAGE_SIZE_DEFAULT}; a larger one counts as {xtimer.PAGE_SIZE_MAX}
timers of an app, records of a timer that are paged | the first {LINES_MAX:,}, the latest \
{xtimer.RECORDS_MAX:,}
"""

FIELDS = f"""
`biz_type` | {task(biz_type="")}
`key`, `key_prefix` | {task(key="")}
`payload` | {task_requests.PAYLOAD_BYTES_MAX // 1024} KiB of UTF-8
`due_at`, `max_due_at` | from 1970 to {AHEAD_DAYS_MAX:,} days ahead
`due_ms` | from 10^11, in 1973, to {AHEAD_DAYS_MAX:,} days ahead
`delay_seconds` | {task(delay_seconds=-1)} ({AHEAD_DAYS_MAX:,} days)
`expires_after_seconds` | {task(expires_after_seconds=0)} ({AHEAD_DAYS_MAX:,} days)
`flow_key` | {task(flow_key="")}
`labels`, `label` | {labels.LABELS_MAX} of a task or a timer; names: {labels.NAME_IS}; \
values: {task(labels={"a": ""})}
`tolerance_seconds` | {task(tolerance_seconds=-1)}, in whole seconds
URL | {url.URL_LENGTH_MAX:,} characters, {url._HOST_LENGTH_MAX} of them its host
headers | {callbacks.HEADERS_MAX}, and {callbacks.HEADERS_BYTES_MAX:,} bytes of names and values
message attributes | {message.ATTRIBUTES_MAX}, and {message.ATTRIBUTES_BYTES_MAX:,} bytes of names \
and values
`group_id` | {visible(message._GROUP_ID)}
`retry.attempts` | {retried(attempts=0)}, by default {USUAL.attempts_max}
`retry.delays_seconds` | {retried(delays_seconds=[])}, each {retried(delays_seconds=[-1])}
`retry.first_delay_seconds` | {retried(first_delay_seconds=0)}, by default \
{USUAL.first_delay_seconds:g}
`retry.factor` | {retried(factor=0)}, by default {USUAL.factor:g}
`retry.max_delay_seconds` | from the first delay to {retry.RETRY_DELAY_SECONDS_MAX:,}, by default \
{USUAL.delay_max_seconds:,.0f}
`retry.max_age_seconds` | {retried(max_age_seconds=0)}
`flow.prefixes`, `paused_flow_keys` | {PREFIXES_MAX} prefixes; {PAUSED_MAX} paused keys
settings of a business | hold within {KEPT_MS // 1000} s everywhere
`retention_days` | {business(retention_days=0)}
`timeout_seconds`, of a callback and of a business | {business(timeout_seconds=0)}: half of the \
notifier's timeout
`allowed_hosts`, `trusted_origins` | {business(allowed_hosts=[])} each
`retry_statuses`, `stop_statuses` | {business(stop_statuses=[0] * 999)} each: \
{business(stop_statuses=[0])}
`calls_per_second`, `creates_per_second` | {business(calls_per_second=-1)}
`calls_in_flight` | {business(calls_in_flight=-1)}
`keep_answers` | {KEPT_BYTES_MAX:,} bytes, {ANSWER_HEADERS_MAX} headers; \
{HEADER_CHARACTERS_MAX} characters of a header's value
`signing_secrets` | {business(signing_secrets=[])}, the newest first; \
each is {business(signing_secrets=[""])}
`secrets` | {NAMED_SECRETS_MAX} of a business, each {business(secrets={"a": ""})}
`name`, `managed_by` of a timer | {timer(name="")}
`cron` | {timer(cron="*" * 999)}
`every_seconds` | {timer(every_seconds=0)} ({timer_requests.EVERY_SECONDS_MAX // 86_400} days)
`start_at`, `end_at` | {timer(start_at="1969-01-01T00:00:00Z").replace(",", "")}
`max_runs` | {timer(max_runs=0)}
`jitter_seconds` | {timer(jitter_seconds=-1)}
`grace_seconds` | {timer(grace_seconds=-1)}, by default {Rules("", Schedule()).grace_seconds}
`exclude` | {timer(exclude=[""] * 999)}
`payload` of a timer | {timer(payload="{{number}}" * 999)}
`name` of an API key | {api_key(name="")}
`grants` of an API key | {api_key(grants=[])}
`expires_at` of an API key | up to {AHEAD_DAYS_MAX:,} days ahead
`overlap_seconds` | {overlap(overlap_seconds=-1)}, by default \
{access_requests.OVERLAP_SECONDS_DEFAULT:,}
"""

WORK = f"""
a change, a run, a cancel | {CUT_OFF} of `next_at`: \
the lead of {LEAD_MS} ms and {SKEW_MS // 1000} s for the skew of clocks
a redrive | until {lifecycle.ABOUT_TO_GO_MS // 60_000} minutes before `expires_at`; of a delivered \
task from {lifecycle.REDRIVABLE_AFTER_MS // 60_000} minutes after its delivery on
a callback | {CALLBACK_TIMEOUT_SECONDS} s, or `timeout_seconds` of the callback, or of the \
business, \
from the name's look-up to the end of the reply, {CONNECT_SECONDS_MAX:g} s of them to connect
the reply of a callback | {REPLY_BYTES_MAX:,} bytes are read; a longer one counts by its status, \
if its head has come
the answer of a function | {outcome.ANSWER_BYTES_MAX:,} bytes are read
redirects of a callback | none is followed
`Retry-After` | obeyed up to {retry.RETRY_AFTER_SECONDS_MAX:,.0f} s
callbacks of one notifier at once | {CALLS_IN_FLIGHT_MAX}
attempts in `history` | the last {lifecycle.HISTORY_MAX}
`note`, `last_error` | {lifecycle.NOTE_CHARACTERS_MAX} characters
changes that are kept | the last {changes.KEPT_MAX} of each definition, and \
{changes.DELETED_KEPT_SECONDS // 86_400} days after it is deleted; values up to \
{changes.SHOWN_CHARACTERS_MAX} characters
the record of a task that has ended | kept {parameter("RetentionDays", " days")}, or \
`retention_days` of the business
"""

# Of README.md, whose links are those of its folder.
IN_SHORT = f"""
payload | {task_requests.PAYLOAD_BYTES_MAX // 1024} KiB, passed on as the text that was sent
due instant | up to {AHEAD_DAYS_MAX:,} days ahead, ten years
batch | {task_requests.BATCH_TASKS_MAX} tasks, {task_requests.BATCH_BYTES_MAX:,} bytes
requests | {parameter("ApiRequestsPerSecond", " a second")}; DynamoDB limits what they can write
tasks of one due second | {OF_ONE_SECOND}
creates of one business | {CREATES}
cancel | {CUT_OFF} in which the next attempt is due
attempts | {retried(attempts=0)}, by default {USUAL.attempts_max}
a callback may take | {CALLBACK_TIMEOUT_SECONDS} s, or its `timeout_seconds`
calls in flight in a notifier | {CALLS_IN_FLIGHT_MAX}; Lambda starts with five notifiers and adds \
300 a minute, up to 1,250 or `NotifierConcurrency`, or keeps those of `ProvisionedPollers`; the \
same in the [slow lane](docs/delivery.md#the-slow-lane)
all others | in [docs/api.md](docs/api.md#limits)
"""
