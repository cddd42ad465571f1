"""Refusals that may answer requests which the document's schemas allow, with their reasons; and
requests that are accepted although a schema forbids them, for clients of another service.

A schema cannot express rules about the state of the service, about two fields together, or rules
that only code can check. Each row names such a rule. The schemas of a call's answers already check
which types of problem it may return.
"""

import re
from collections.abc import Sequence
from functools import partial
from typing import Any

from msgspec import Struct

from tests.fuzz.requests import Name
from tests.fuzz.service import problem_of


class Row(Struct, frozen=True):
    problem: str
    why: str
    field: str = ".*"  # the path of an invalid field; the message of an xTimer refusal
    calls: str = ".*"  # method and path
    documented: str = ""  # the detail, as the document has it


_invalid = partial(Row, "invalid-field")
ROWS: Sequence[Row] = (
    # The state of the service.
    Row("unknown-task", "no such task", calls=r".*/tasks/\{(task_id|key)\}"),
    Row("unknown-timer", "no such timer", calls=r".*/timers/(\{timer_id\}|by-name/).*"),
    Row(
        "unknown-business", "no such business", calls=r"(GET|DELETE) /v1/businesses/\{biz_type\}.*"
    ),
    Row("unknown-operation", "no such operation", calls=r".*/operations/\{operation_id\}.*"),
    Row("operation-ended", "the operation has ended", calls=r"POST /v1/operations/.*/stop"),
    Row("too-many-operations", "as many bulk operations", calls="POST /v1/operations"),
    _invalid("an id of a task says where it stands", field="ids", calls="POST /v1/operations"),
    Row("unknown-api-key", "no such API key", calls=r".*/keys/\{key_id\}.*"),
    Row("malformed-task-id", "an id of a task says where it stands", calls=r".*\{task_id\}.*"),
    Row(
        "unknown-task",
        "no such task",
        calls=r"POST /v1/tasks/\{task_id\}/(run|redrive|pause|resume)",
    ),
    Row("already-settled", "the task has ended", calls=r".*/tasks/\{(task_id|key)\}.*"),
    Row("too-late", "the task's cut-off has passed", calls=r".*/tasks.*"),
    Row("not-redrivable", "the task is not dead", calls=r"POST /v1/tasks/\{task_id\}/redrive"),
    Row(
        "invalid-token",
        "the token seals an attempt of the task",
        calls=r"POST /v1/tasks/\{task_id\}/(complete|fail|progress)",
    ),
    Row("tasks-pending", "the business has tasks", calls=r"DELETE /v1/businesses/\{biz_type\}"),
    Row("has-timers", "the business has timers", calls=r"DELETE /v1/businesses/\{biz_type\}"),
    Row("key-taken", "another task has the key", calls=r"(POST|PUT) /v1/.*"),
    Row("version-mismatch", "the precondition does not hold"),
    Row(
        "idempotency-key-reused",
        "the key came before",
        calls=r"POST /(v1/(tasks(/batch)?|timers(/\{timer_id\}/run)?|operations)|.*/api/.*)",
    ),
    Row("api-key-ended", "the API key is revoked", calls=r"POST /v1/keys/\{key_id\}/rotate"),
    _invalid("the business has no breaker of the host", field="host", calls=r".*/probe"),
    Row(
        "too-many-creates",
        "the business's own limit",
        calls=r"(POST|PUT|PATCH) /v1/(tasks|timers).*",
    ),
    Row("target-not-enabled", "what this deployment may call"),
    Row("code-404", "no such timer", calls=r".*/api/.*"),
    # Two fields together, or a field and the business.
    _invalid("the business fills in no callback", field=r"(.*\.)?callback(\.url)?"),
    _invalid(
        "smaller than first_delay_seconds",
        field=r"(.*\.)?retry\.max_delay_seconds",
        documented="`max_delay_seconds` is at least `first_delay_seconds`",
    ),
    _invalid("beside delays_seconds", field=r"(.*\.)?retry\.\w+"),
    _invalid("beside if-match", field="if-none-match", documented="not beside `If-Match`"),
    _invalid(
        "begin and end of a period", field=r"from|to|(filter\.)?(since|until|due_from|due_to)"
    ),
    _invalid(
        "cron or every_seconds",
        field="cron|every_seconds|dst_gap|dst_overlap",
        documented="The timer has to have one of `cron` and `every_seconds` then",
    ),
    _invalid("limits of no key", field="flow", documented="One of both has limits"),
    _invalid(
        "one call at a time beside in_order",
        field=r"flow\.(default|prefixes\..*)\.calls_in_flight",
        documented="called one after the other, so `calls_in_flight` is 1",
    ),
    _invalid(
        "not less than every_seconds",
        field="jitter_seconds",
        documented="Less than `every_seconds`",
    ),
    _invalid("no string, where the body is raw", field=r"(.*\.)?payload"),
    _invalid(
        "more than the deployment's maximum",
        field=r"(.*\.)?timeout_seconds",
        documented="At most what the deployment allows",
    ),
    # The clock.
    _invalid(
        "more than ten years ahead",
        field=r"(.*\.)?(due_at|due_ms|max_due_at)",
        documented="p to ten years ahead",
    ),
    _invalid("out of the reach of timers", field="start_at|end_at|from|exclude.*"),
    _invalid("in the past", field="expires_at"),
    # Rules that only code can check.
    _invalid(
        "opaque: the service makes it", field="cursor", documented="What the page before answered"
    ),
    _invalid("no URL that may be called", field=r"(.*\.)?url"),
    _invalid("a header that is not the caller's", field=r"(.*\.)?headers(\..*)?"),
    _invalid("no zone of IANA", field="timezone", documented="A zone of the IANA database"),
    _invalid("not printable", field=r"name|name_prefix|managed_by|(.*\.)?labels?\..*"),
    _invalid("no host or origin", field="allowed_hosts|trusted_origins"),
    _invalid("not base64 of a secret", field="signing_secrets"),
    _invalid("no value that a header can have", field=r"secrets\..*"),
    Row("code-422", "no URL that may be called", field=r"notifyHTTPParam\.url.*"),
    Row("code-422", "an app whose business's name is too long", field="app: is too long.*"),
    Row(
        "code-422",
        "no cron, or one that never fires",
        field="cron.*",
        documented="that name a time to come",
    ),
    Row("too-large", "a payload, headers or a body over its bytes"),
)
_INDEX = re.compile(r"\[\d+\]")


def row_of(name: Name, problem: Any) -> Row | None:
    """The row that allows this refusal."""
    kind, call = problem_of(problem), " ".join(name)
    field = _INDEX.sub("", str(problem.get("field") or problem.get("msg") or ""))
    for row in ROWS:
        if (
            row.problem == kind
            and re.fullmatch(row.calls, call)
            and re.fullmatch(row.field, field, re.DOTALL)
        ):
            return row
    return None


def is_of_xtimer(name: Name) -> bool:
    """xTimer's own server treats a blank parameter as absent, and uses the first of a repeated
    one."""
    return name[1].startswith("/api/")
