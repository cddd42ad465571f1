"""Writes the parts of the pages that follow from the code, in place: `make examples`.

A part is between two comments; the first one names it. The head of a table is written by hand. Of
some tables the code gives every cell. Of others it gives the names, and the explanations are
written by hand: a name without a row, and a row without a name, are errors.
"""

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import accumulate
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from botocore.session import Session

from docs import limits
from docs.examples.layout import laid_out
from docs.limits import TEMPLATE
from duewheel.api.wheel_calls import API_DOCUMENT
from duewheel.interface.http import Calls
from duewheel.interface.problems import URN, internal, misconfigured
from duewheel.metrics import METRICS
from duewheel.rules.access.api_keys import PATTERN as KEY_PATTERN
from duewheel.rules.callbacks.aws.outcome import ABOUT_THE_REQUEST
from duewheel.rules.callbacks.aws.registry import AWS_TARGETS
from duewheel.rules.callbacks.outcome import RETRY_DEFAULT, STOP_DEFAULT
from duewheel.rules.callbacks.payload_encoding import attributes_of, callback_headers, envelope
from duewheel.rules.callbacks.requests import TYPES
from duewheel.rules.callbacks.retry import DEFAULT_RETRY, delay_ms
from duewheel.rules.callbacks.secret_headers import NOT_SECRET, SCHEMES, SECRET_WORDS, shown_value
from duewheel.rules.instants import ms_from_rfc3339
from duewheel.rules.refusals import Refusal
from duewheel.rules.sweep.audit import Wrong
from duewheel.rules.timers.schedule import DstGap, DstOverlap, Schedule, seconds_from
from duewheel.rules.timers.schedule_validation import refusal_of
from duewheel.rules.timers.time_zones import zone_named
from duewheel.rules.wheel.open_places import Why
from duewheel.xtimer import calls as xtimer
from functions.api.app import CALLS
from local import __main__ as local_stack
from local.aws.emulator import Emulator
from local.aws.metrics import Filter, filters_of
from local.aws.policies import Right, roles_of
from tests.support.alarms import Alarm, alarms_of, observability, with_observability
from tests.support.clock import ManualClock

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
SOURCES = [*(ROOT / "layers/core").rglob("*.py"), *(ROOT / "functions").rglob("*.py")]
PLACE = re.compile(r"(<!-- made by make examples: ([^\n]+) -->\n)(.*?)(<!-- end -->\n)", re.DOTALL)
STAGE = TEMPLATE["Resources"]["ApiStage"]["Properties"]
SCHEMAS = json.loads(API_DOCUMENT.read_text("utf-8"))["components"]["schemas"]
PRICES = json.loads((ROOT / "bench/cost/prices.json").read_text("utf-8"))

Row = Sequence[str]
Rows = Iterable[Row]
Maker = Callable[[Sequence[Row]], Rows]  # the rows that there should be, by those that there are
Names = Callable[[Row], list[str]]  # what a row is about


class TableError(Exception):
    """A table's rows do not match the names in the code."""


def with_all_made(page: str) -> str:
    return PLACE.sub(lambda place: place[1] + made(place[2], place[3]) + place[4], page)


def made(name: str, old: str) -> str:
    if name in BLOCKS:
        return f"{BLOCKS[name]()}\n"
    if name not in TABLES:
        raise TableError(f"there is no table {name}")
    head, line, *rows = old.splitlines()
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    try:
        lines = [f"| {' | '.join(row)} |" for row in TABLES[name](cells)]
    except TableError as error:
        raise TableError(f"{name}: {error}") from None
    return "\n".join([head, line, *lines, ""]).replace("|  |", "| |")


def ticks(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def ticked(names: Iterable[object]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def explained(
    facts: Iterable[str] | Mapping[str, Row], names: Names = lambda row: ticks(row[0])
) -> Maker:
    """A table by hand, except for the cells after the first one: one for each fact of a name."""

    def rows(old: Sequence[Row]) -> Rows:
        found = {name for row in old for name in names(row)}
        if missing := sorted({*facts} - found):
            raise TableError(f"no row explains {', '.join(missing)}")
        if unknown := sorted(found - {*facts}):
            raise TableError(f"there is no {', '.join(unknown)}")
        for row in old:
            fact = facts[names(row)[0]] if isinstance(facts, Mapping) else ()
            yield row[0], *fact, *row[1 + len(fact) :]

    return rows


def computed(last: Callable[..., str]) -> Maker:
    """A table by hand, except for the last cell, which is computed from the others."""
    return lambda old: [[*row[:-1], last(*(cell.strip("`") for cell in row[:-1]))] for row in old]


# Of the template


def parameters() -> dict[str, Row]:
    """Default and description; a built template does not have that of the build."""
    return {
        name: ("none" if one["Default"] == "" else f"`{one['Default']}`", one["Description"])
        for name, one in TEMPLATE["Parameters"].items()
        if name != "Architecture"
    }


class Deployed(NamedTuple):
    rights: list[Right]
    filters: set[Filter]
    alarms: list[Alarm]  # those that parameters bring come last


@cache
def deployed() -> Deployed:
    with Emulator(ManualClock()):
        usual = with_observability()
        whole = with_observability(
            AuthMode="keys",
            IngestBusinesses="*",
            StackTimersAs="duewheel-write",
            TasksPerDayAlarm="1000",
        )
        rights = [right for role in roles_of(whole).values() for right in role.rights()]
        return Deployed(rights, filters_of(whole), alarms_of(observability(usual), usual, whole))


def rights(_: Sequence[Row]) -> Rows:
    actions: dict[tuple[str, str], list[str]] = {}
    for right in deployed().rights:
        service, _colon, action = right.action.partition(":")
        resource = right.resource.rpartition("duewheel-")[2].replace("/index/", " by its index ")
        if service != "logs":
            function = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", right.role.removesuffix("Role")).lower()
            actions.setdefault((function, resource), []).append(action)
    return [(*key, ", ".join(sorted(of))) for key, of in actions.items()]


def alarms(_: Sequence[Row]) -> Rows:
    """A description begins with the condition, and ends with its section of the runbook."""
    rows: dict[str, Row] = {}
    for alarm in deployed().alarms:
        when, section = alarm.description.partition(". ")[0], alarm.description.rpartition("#")[2]
        dollars = f"{len(alarm.watched) * PRICES['alarm_month']:.2f}"
        rows.setdefault(alarm.name, (f"[{alarm.name}](#{section})", when, dollars))
    return rows.values()


def services_called() -> set[str]:
    """The endpoints that the notifier calls. AWS calls those for logs, interfaces and keys."""
    role = {"Ref": "NotifierRole"}
    policies = [
        resource
        for name, resource in TEMPLATE["Resources"].items()
        if name == "NotifierRole" or role in resource["Properties"].get("Roles", [])
    ]
    by_aws = {"logs", "ec2", "sts", "kms"}
    return endpoints_of(set(re.findall(r"'([a-z0-9]+):[A-Z]\w+'", repr(policies))) - by_aws)


def endpoints_of(services: set[str]) -> set[str]:
    """By their names in IAM: the SDK's client and the endpoint may have other names."""
    clients = {one.service: one.client for one in AWS_TARGETS}
    session = Session()
    models = [session.get_service_model(clients.get(name, name)) for name in services]
    return {model.endpoint_prefix for model in models}


# Of the interface


def problems() -> dict[str, Row]:
    failures = [json.loads(one.text) for one in (internal(""), misconfigured(""))]
    statuses = {one["type"].removeprefix(URN): one["status"] for one in failures}
    statuses |= {refusal.type: refusal.status for refusal in refusals(Refusal)}
    return {name: (str(status),) for name, status in statuses.items()}


def refusals(of: type[Refusal]) -> Iterator[type[Refusal]]:
    for refusal in of.__subclasses__():
        yield refusal
        yield from refusals(refusal)


def members(schema: str) -> Maker:
    """The members of a schema of the API document; a nested one counts for its parent."""
    known = [*SCHEMAS[schema]["properties"]]
    return explained(known, lambda row: [name.partition(".")[0] for name in ticks(row[0])])


def lines_of(text: str) -> Maker:
    return lambda old: [line.split(" | ") for line in text.strip().splitlines()]


def secret_headers(_: Sequence[Row]) -> Rows:
    yield "its name contains, in any case", ticked(SECRET_WORDS)
    yield "and its name is not", ticked(NOT_SECRET)
    yield "or its value begins, before a blank, with", ticked(SCHEMES)


def shown_secret() -> str:
    shown = shown_value("authorization", "Bearer eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9")
    return f'    "headers": {{"authorization": "{shown}"}}'


# Of callbacks

TASK: Any = SimpleNamespace(
    task_id="AQG5dxdnQAAA48fN5E11gpkpQwrd",
    biz_type="orders",
    due_at_ms=ms_from_rfc3339("2030-01-31T08:30:00Z"),
    attempts=0,
    payload='{"order": 17}',
    redrives=0,
    completion_token="0.1.rx41bPvUbY2F5iTrLbzkQw",
)


def event() -> str:
    return f"```json\n{laid_out(envelope(TASK))}\n```"


def targets(_: Sequence[Row]) -> Rows:
    for one in AWS_TARGETS:
        arn = f"arn:aws:{one.service}:eu-central-1:123456789012:{one.kind}orders-*"
        yield f"`{one.name}`", f"`{arn}`", f"`{one.action}`"


def stop_codes(_: Sequence[Row]) -> Rows:
    yield "any", ticked(sorted(ABOUT_THE_REQUEST))
    for target in AWS_TARGETS:
        if target.stop_codes:
            yield f"`{target.name}`", ticked(target.stop_codes)


def statuses(_: Sequence[Row]) -> Rows:
    yield "`retry_statuses`", ", ".join(map(str, RETRY_DEFAULT))
    yield "`stop_statuses`", ", ".join(map(str, STOP_DEFAULT))


def retries(_: Sequence[Row]) -> Rows:
    """The longest waits: with jitter each wait is a part of it."""
    delays = [delay_ms(DEFAULT_RETRY, made, 1.0) for made in range(1, DEFAULT_RETRY.attempts_max)]
    waits = [0, *(delay // 1000 for delay in delays if delay is not None)]
    for attempt, (wait, after) in enumerate(zip(waits, accumulate(waits), strict=True), 1):
        yield str(attempt), lasting(wait) if wait else "", lasting(after)


def lasting(seconds: int) -> str:
    parts = (seconds // 3600, "h"), (seconds // 60 % 60, "min"), (seconds % 60, "s")
    return " ".join(f"{number} {unit}" for number, unit in parts if number) or "0 s"


# Of timers

FIRST_OF_2026 = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp())


def fires(cron: str) -> str:
    seconds = seconds_from(Schedule(cron=cron), FIRST_OF_2026, 2)
    return ", ".join(f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S}" for at in seconds)


def fires_on(name: str, day: str, cron: str, setting: str) -> str:
    """`setting` is a word of only one of `dst_gap` and `dst_overlap`."""
    is_of_gaps = setting in set(DstGap)
    gap = DstGap(setting) if is_of_gaps else DstGap.SHIFT
    overlap = DstOverlap.FIRST if is_of_gaps else DstOverlap(setting)
    zone = zone_named(name)
    midnight = datetime.fromisoformat(day).replace(tzinfo=zone)
    first, end = (int(at.timestamp()) for at in (midnight, midnight + timedelta(days=1)))
    schedule = Schedule(cron=cron, timezone=name, dst_gap=gap, dst_overlap=overlap)
    seconds = seconds_from(schedule, first, 99, until=end - 1)
    times = [datetime.fromtimestamp(second, UTC).astimezone(zone) for second in seconds]
    return ", ".join(f"{at:%H:%M}{at.isoformat()[-6:]}" for at in times) or "never"


def refused(cron: str) -> str:
    field, reason = refusal_of(Schedule(cron=cron), FIRST_OF_2026) or ("", "")
    if field != "cron":
        raise TableError(f"{cron} is taken")
    return reason


# Of commands and logs

# In calls of the logger, in arguments for it, and, below, in the outcomes of tasks.
ACTION = re.compile(r'\baction="([a-z-]+)"|"action": "([a-z-]+)"|"(breaker-[a-z]+)"')
ENDS = ("dead", "expired")
MAKEFILES = "".join((ROOT / name).read_text("utf-8") for name in ("infra/build.mk", "Makefile"))
VERBS = re.findall(r"^([a-z-]+):.* ##([om]?) (.*)$", MAKEFILES, re.MULTILINE)
FOR_OPERATORS = {
    verb: words for verb, mark, words in VERBS if mark == "o" or verb in ("build", "deploy")
}


def actions() -> set[str]:
    """Of the log."""
    found = [one for source in SOURCES for one in ACTION.findall(source.read_text("utf-8"))]
    return {name for groups in found for name in groups if name}.union(ENDS)


def log_metrics(old: Sequence[Row]) -> Rows:
    return explained({one.metric: (one.unit,) for one in deployed().filters})(old)


def local_settings() -> set[str]:
    """The settings that the local stack reads from the environment, also by a constant's name."""
    sources = [source.read_text("utf-8") for source in (ROOT / "local").glob("*.py")]
    named = re.findall(r'environ\.get\(\s*"?(\w+)', "".join(sources))
    return {getattr(local_stack, name, name) for name in named}


def local_routes() -> list[str]:
    return re.findall(r'case \["(\w+)"', (ROOT / "local/control/routes.py").read_text("utf-8"))


def calls(table: Calls) -> Maker:
    return explained(
        {f"{method} {path}" for path, methods in table.by_path.items() for method in methods},
        lambda row: [name.partition("?")[0] for name in ticks(row[0])],
    )


TABLES: Mapping[str, Maker] = {
    "parameters": explained(parameters()),
    "outputs": lambda _: [
        (f"`{name}`", one["Description"]) for name, one in TEMPLATE["Outputs"].items()
    ],
    "rights of the functions": rights,
    "alarms": alarms,
    "metrics": explained({one.name: (one.unit,) for one in METRICS}),
    "metrics of the log": log_metrics,
    "actions of the log": explained(actions()),
    "members of the access log": explained([*json.loads(STAGE["AccessLogSettings"]["Format"])]),
    "endpoints": explained(services_called(), lambda row: ticks(row[-1])[:1]),
    "calls": calls(CALLS),
    "calls of xTimer": calls(xtimer.CALLS),
    "problems": explained(problems()),
    "fields of a task": members("NewTask"),
    "fields of a timer": members("NewTimer"),
    "settings of a business": members("BusinessChange"),
    "limits in short": lines_of(limits.IN_SHORT),
    "limits of calls": lines_of(limits.CALLS),
    "limits of xTimer": lines_of(limits.XTIMER),
    "limits of fields": lines_of(limits.FIELDS),
    "limits of work": lines_of(limits.WORK),
    "headers with secrets": secret_headers,
    "headers of a callback": explained(
        [*callback_headers(TASK, TASK.due_at_ms, secrets=(b"one",))]
    ),
    "attributes of a message": explained([*attributes_of(TASK)]),
    "types of callbacks": explained(TYPES, lambda row: ticks(row[0])[:1]),
    "members of targets": explained(
        {name for one in AWS_TARGETS for name in (one.name, *one.body.__struct_encode_fields__)}
        - {"type"},
        lambda row: ticks(row[0] + row[1]),
    ),
    "parameters of targets": targets,
    "codes that stop": stop_codes,
    "statuses": statuses,
    "retries": retries,
    "reasons of open places": explained(Why),
    "findings of an audit": explained(Wrong),
    "occurrences": computed(fires),
    "occurrences where clocks are set": computed(fires_on),
    "refused expressions": computed(refused),
    "verbs of operators": lambda _: [
        (f"`make {verb}`", words) for verb, words in FOR_OPERATORS.items()
    ],
    "verbs of contributors": explained(
        {verb for verb, *_ in VERBS} - {*FOR_OPERATORS, "help"},
        lambda row: re.findall(r"`make ([\w-]+)", row[0]),
    ),
    "settings of the local stack": explained(local_settings()),
    "calls of the local stack": explained(
        local_routes(), lambda row: re.findall(r"/_local/(\w+)", row[0])
    ),
}
BLOCKS: Mapping[str, Callable[[], str]] = {
    "event": event,
    "pattern of API keys": lambda: rf"    \b{KEY_PATTERN.replace('(', '').replace(')', '')}\b",
    "secret as it is shown": shown_secret,
}


def main() -> int:
    try:
        renewed = {page: with_all_made(page.read_text("utf-8")) for page in PAGES}
    except TableError as error:
        print(f"The tables are left as they were: {error}", file=sys.stderr)
        return 1
    for page, text in renewed.items():
        page.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
