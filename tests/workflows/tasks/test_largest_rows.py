"""What is stored can be read: the largest task, timer, business and bulk operation that requests,
receivers and repetition make are read, listed and settled."""

import json
from typing import Any

import pytest

from duewheel.rules.access.grants import ANYTHING
from duewheel.rules.bulk.operation import IDS_MAX, State
from duewheel.rules.businesses.flow import PAUSED_MAX, PREFIXES_MAX
from duewheel.rules.businesses.requests import business_change
from duewheel.rules.callbacks import requests as callback_requests
from duewheel.rules.callbacks.answers import HEADERS_MAX as KEPT_HEADERS_MAX
from duewheel.rules.callbacks.completion import WITHIN_HEADER, WITHIN_SECONDS_MAX
from duewheel.rules.callbacks.outcome import HEADER_CHARACTERS_MAX
from duewheel.rules.callbacks.payload_encoding import AttemptName
from duewheel.rules.callbacks.retry import ATTEMPTS_MAX
from duewheel.rules.callbacks.types import KEPT_BYTES_MAX, Told
from duewheel.rules.callbacks.url import PATTERNS_MAX, URL_LENGTH_MAX
from duewheel.rules.history.changes import ChangeAction
from duewheel.rules.labels import LABELS_MAX, VALUE_CHARACTERS_MAX
from duewheel.rules.names import AHEAD_SECONDS_MAX
from duewheel.rules.query_string import PageQuery
from duewheel.rules.refusals import InvalidField, Refusal
from duewheel.rules.tasks.lifecycle import HISTORY_MAX, NOTE_CHARACTERS_MAX, REVIVALS_MAX
from duewheel.rules.tasks.listing import ListQuery, ListRequest
from duewheel.rules.tasks.long_work import RESULT_BYTES_MAX, progress_from, result_from
from duewheel.rules.tasks.requests import PAYLOAD_BYTES_MAX, single_request
from duewheel.rules.tasks.task import Status, Task
from duewheel.rules.timers.planning import (
    PLANNED_MAX,
    PLANNED_SECONDS,
    chain_home,
    next_step,
    with_shards,
    without_shards,
)
from duewheel.rules.timers.requests import new_timer
from duewheel.rules.timers.schedule_validation import EXCLUDE_MAX
from duewheel.rules.timers.timer import NAME_CHARACTERS_MAX
from duewheel.rules.timers.updates import changed, changed_rules, planned_by, without_chain
from duewheel.rules.tolerance import TOLERANCE_SECONDS_MAX
from duewheel.rules.wheel.addresses import SHARDS_MAX, TOKEN_BYTES
from duewheel.stores.tasks import codec
from duewheel.targets.http.connection import Reply
from duewheel.wiring.long_work import reported_work
from tests.support.cases import each_case
from tests.support.operations import asked_for, numbers, refused, worked_on
from tests.support.receiver import Received
from tests.support.timers import chain_of, made, now, occurrences
from tests.support.world import CALLER, World

BIZ = "b" * 63
QUOTE = '"'  # twice as long in JSON
WIDE = "\U0001f600"  # four bytes, and twelve where JSON is in ASCII
HOUR_MS = 3_600_000
OPERATIONS = 12  # more than there are marks


def url(begin: str) -> str:
    return begin + QUOTE * (URL_LENGTH_MAX - len(begin))


def headers() -> dict[str, str]:
    names = [f"x-{n:02}" for n in range(callback_requests.HEADERS_MAX)]
    room = callback_requests.HEADERS_BYTES_MAX - sum(map(len, names))
    share, rest = divmod(room, len(names))
    return {name: QUOTE * (share + (rest if name == names[0] else 0)) for name in names}


def callback(begin: str = "https://receiver.example/") -> dict[str, Any]:
    return {"url": url(begin), "method": "DELETE", "headers": headers(), "timeout_seconds": 9.9}


def on_outcome() -> dict[str, Any]:
    hook = callback("https://hook.example/")
    hook["method"] = "POST"
    return {"outcomes": list(Told), "callback": hook, "with_payload": True}


def labels(value: str = WIDE) -> dict[str, str]:
    return {f"{n}" + "l" * 62: value * VALUE_CHARACTERS_MAX for n in range(LABELS_MAX)}


def payload() -> str:
    """Source text, of escapes that stay as they are."""
    return '"' + (r"\u0022" * PAYLOAD_BYTES_MAX)[: PAYLOAD_BYTES_MAX // 6 * 6 - 6] + '"'


def retry() -> dict[str, Any]:
    delays = [0.10000000000000003] * (ATTEMPTS_MAX - 1)
    return {"attempts": ATTEMPTS_MAX, "delays_seconds": delays, "max_age_seconds": 31622399.999}


def shared() -> dict[str, Any]:
    return {
        "callback": callback(),
        "retry": retry(),
        "expires_after_seconds": AHEAD_SECONDS_MAX - 0.0000001,
        "tolerance_seconds": TOLERANCE_SECONDS_MAX,
        "priority": "high",
        "flow_key": QUOTE * 128,
        "labels": labels(),
        "on_outcome": on_outcome(),
    }


def body_of(members: dict[str, Any]) -> str:
    """JSON in ASCII, with the payload as it is."""
    return json.dumps(members)[:-1] + f', "payload": {payload()}}}'


def task_body(**changed: Any) -> str:
    task = {"biz_type": BIZ, "key": "~" * 128, "delay_seconds": 3_600, **shared(), **changed}
    return body_of(task)


def timer_body(**changed: Any) -> str:
    timer = {
        "biz_type": BIZ,
        "name": WIDE * NAME_CHARACTERS_MAX,
        "managed_by": WIDE * NAME_CHARACTERS_MAX,
        "cron": "0 * * * *",
        "timezone": "America/Argentina/ComodRivadavia",
        "exclude": [f"{year}-12-{day:02}" for year in range(2040, 2058) for day in range(1, 22)][
            :EXCLUDE_MAX
        ],
        **shared(),
        **changed,
    }
    return body_of(timer)


def business_body() -> dict[str, Any]:
    limits = {"calls_per_second": 99_999.00000000001, "calls_in_flight": 100}
    long_host = ".".join(["h" * 49] * 5)
    names = {"on_outcome", "callback", "retry", "tolerance_seconds", "priority"}
    return {
        **{name: value for name, value in shared().items() if name in names},
        "retention_days": 3_650,
        "allowed_hosts": ["*.example.com", "*.example"]
        + [f"{n:02}.{long_host}" for n in range(PATTERNS_MAX - 2)],
        "trusted_origins": [f"https://{n:02}.{long_host}:65535" for n in range(PATTERNS_MAX)],
        "retry_statuses": list(range(300, 400)),
        "stop_statuses": list(range(400, 500)),
        "calls_per_second": 99_999.00000000001,
        "calls_in_flight": 100,
        "creates_per_second": 99_999.00000000001,
        "flow": {
            "default": limits,
            "prefixes": {f"{n:02}" + QUOTE * 126: limits for n in range(PREFIXES_MAX)},
        },
        "paused_flow_keys": {f"{n:03}" + QUOTE * 125: True for n in range(PAUSED_MAX)},
        "keep_answers": {
            "body_bytes": KEPT_BYTES_MAX,
            "headers": [f"{n}" + "x" * 63 for n in range(KEPT_HEADERS_MAX)],
        },
        "secrets": {f"{n:02}" + "s" * 61: "v" * 1_024 for n in range(20)},
    }


def configured(world: World, body: dict[str, Any]) -> None:
    world.configured(BIZ, **business_change(json.dumps(body), world.businesses.defaults))


def keeps_answers(world: World) -> None:
    configured(world, {"keep_answers": business_body()["keep_answers"]})


def stored(world: World, body: str) -> Task:
    return world.created_by_key(single_request(body, world.clock.now_ms())).task


def answered(world: World, status: int, **more: str) -> None:
    """By the longest answer of which all is kept that can be; the notices are delivered."""
    kept = dict.fromkeys(_kept_headers(), QUOTE + "\x7f" * HEADER_CHARACTERS_MAX)
    body = (QUOTE * 10_000).encode()

    def answer(received: Received) -> Reply:
        is_notice = received.url.startswith("https://hook.example/")
        return Reply(200 if is_notice else status, {**kept, **more}, body)

    world.receiver.whole_answer = answer


def _kept_headers() -> list[str]:
    names: list[str] = business_body()["keep_answers"]["headers"]
    return names


def check_readable(world: World, task: Task) -> Task:
    """By each reader of tasks: all items, the list, the sweep."""
    found = world.read(task)
    for item in world.items():
        if "status" in item:
            codec.task_from(item)
            codec.home_state_from(item)
    page = world.list_tasks(ListRequest(ListQuery(BIZ, labels=found.labels), 100))
    assert task.task_id in [one.task_id for one in page.tasks]
    return found


def ended_again(world: World, task: Task) -> Task:
    """Redriven, and dead at the first call."""
    world.clock.advance_ms(1_000)
    return world.fall_due(world.redrive(task.task_id))


def test_a_task_of_the_largest_members_that_has_its_longest_history_is_read_and_settled(
    world: World,
) -> None:
    keeps_answers(world)
    task = stored(world, task_body())
    check_readable(world, task)
    answered(world, 410)
    dead = world.fall_due(task)
    for _ in range(REVIVALS_MAX + 2):
        dead = ended_again(world, dead)
        assert dead.status is Status.DEAD
    assert (len(dead.history), len(dead.revivals)) == (HISTORY_MAX, REVIVALS_MAX + 1)
    assert {len(one.note) for one in dead.history} == {NOTE_CHARACTERS_MAX}
    assert dead.answer is not None
    assert len(dead.answer.body) == KEPT_BYTES_MAX
    assert {len(value) for value in dead.answer.headers.values()} == {HEADER_CHARACTERS_MAX}
    assert len(dead.answer.headers) == KEPT_HEADERS_MAX
    assert check_readable(world, dead) == dead


def test_a_task_whose_receiver_works_on_with_the_longest_reports_is_read_and_settled(
    world: World,
) -> None:
    keeps_answers(world)
    task = stored(world, task_body())
    answered(world, 202, **{WITHIN_HEADER: str(WITHIN_SECONDS_MAX)})
    running = world.fall_due(task)
    report, first = reported_work(), AttemptName(0, 1)
    note, seconds = progress_from(json.dumps({"note": QUOTE * NOTE_CHARACTERS_MAX}))
    running = report.progress(running.home, first, note, seconds)
    assert check_readable(world, running).running == running.running
    result = result_from(json.dumps({"result": "\x01" * RESULT_BYTES_MAX}))
    report.complete(running.home, first, result)
    ended = check_readable(world, task)
    assert (ended.status, ended.result) == (Status.DELIVERED, "\x01" * RESULT_BYTES_MAX)
    assert ended.notice_id is not None


def test_the_notice_with_the_largest_payload_is_read_and_delivered(world: World) -> None:
    keeps_answers(world)
    task = stored(world, task_body())
    answered(world, 410)
    dead = world.fall_due(task)
    world.let_pass(3)
    told = [one for one in world.receiver.received if one.url.startswith("https://hook.example/")]
    assert [json.loads(one.body or b"")["task_id"] for one in told] == [dead.task_id]
    assert payload().encode() in (told[0].body or b"")
    notices = [codec.task_from(item) for item in world.items() if "notice_of" in item]
    assert [(one.status, one.notice_of) for one in notices] == [(Status.DELIVERED, dead.task_id)]


def test_more_of_the_largest_operations_than_a_task_has_marks_leave_it_readable(
    world: World,
) -> None:
    task = stored(world, task_body(delay_seconds=86_400))
    chosen = {
        "status": "pending",
        "due_from": "1970-01-01T00:00:00.000Z",
        "due_to": "2100-01-01T00:00:00.000Z",
        "key_prefix": "~" * 128,
        "flow_key": QUOTE * 128,
        "labels": labels(),
    }
    for number in range(OPERATIONS):
        world.clock.advance_ms(1_000)
        shift: dict[str, Any] = {"action": "reschedule", "shift_seconds": (-1) ** number * 3_600}
        begun = asked_for(world, **shift, biz_type=BIZ, filter=chosen, per_second=1_000)
        after = worked_on(world, begun)
        assert (after.state, numbers(after)) == (State.DONE, (1, 0, 0))
    assert len((check_readable(world, task).marks or "").split()) == 10
    answered(world, 200)
    keeps_answers(world)
    assert world.settle(task).status is Status.DELIVERED


def test_an_operation_of_as_many_ids_as_there_can_be_is_read_with_what_it_refused(
    world: World,
) -> None:
    fields = {"biz_type": BIZ, "labels": tuple(sorted(labels().items()))}
    tasks = world.created_many([world.new(HOUR_MS, **fields) for _ in range(IDS_MAX)])
    ids = [task.task_id for task in tasks if isinstance(task, Task)]
    assert len(ids) == IDS_MAX
    shift: dict[str, Any] = {"action": "reschedule", "shift_seconds": AHEAD_SECONDS_MAX}
    after = worked_on(world, asked_for(world, **shift, biz_type=BIZ, ids=ids))
    assert (after.state, numbers(after)) == (State.DONE, (0, 0, IDS_MAX))
    assert sorted(one.item_id for one in refused(world, after)) == sorted(ids)


def test_a_timer_of_the_largest_members_is_read_changed_and_its_runs_are_called(
    world: World,
) -> None:
    keeps_answers(world)
    new = new_timer(timer_body(), world.clock.now_ms())
    timer = world.create_timer(new, by=CALLER)
    assert world.timers.read(timer.timer_id) == timer
    lines, _ = world.timers.page(BIZ, timer.rules.name, None, 10)
    assert [one.timer_id for one in lines] == [timer.timer_id]
    answered(world, 200)
    run = world.run_timer(timer.timer_id)
    assert world.settle(run).status is Status.DELIVERED
    for task in (*occurrences(world, timer), run):
        check_readable(world, task)
    off = world.change_timer.disable(timer.timer_id, by=CALLER)
    assert world.timers.read(timer.timer_id) == off
    kept = world.read_changes.of_timer(timer.timer_id)
    assert [change.did for change in kept.changes] == [ChangeAction.DISABLED, ChangeAction.CREATED]


def test_a_timer_that_is_moved_through_all_that_may_be_planned_is_planned_on(world: World) -> None:
    """Each chain hands the shard counts of the seconds that it has planned on to the next one. With
    the tolerance they are due in one second, which is crowded."""
    timer = made(world, tolerance_seconds=TOLERANCE_SECONDS_MAX)
    chain = chain_of(world, timer)
    placement, second = world.entry_writer.placement(), now(world)
    for start in range(second + 1, second + PLANNED_SECONDS, PLANNED_MAX):
        moved = changed_rules(timer.rules, {"start_at": start}, second)
        after = changed(timer, moved, enabled=True, now_ms=placement.now_ms)
        after = without_chain(timer, after, chain, second)
        chain = chain_home(after, placement, start.to_bytes(TOKEN_BYTES, "big"))
        timer = planned_by(after, chain.home, second)
        assert chain.plan is not None
        step = next_step(timer, chain.plan, placement.now_ms)
        due = without_shards(timer, chain.plan, step)
        shards = dict.fromkeys(due.items(), SHARDS_MAX)
        chain, _ = with_shards(chain, chain.plan, step, shards, placement.now_ms)
    assert chain is not None
    assert chain.plan is not None
    assert len(chain.plan.sizes.shards) == PLANNED_SECONDS - 1
    assert world.tasks.create(chain)
    assert world.read(chain) == chain


def test_a_business_of_the_largest_settings_is_read_listed_and_changed(world: World) -> None:
    configured(world, business_body())
    business = world.businesses.read_whole(BIZ)
    assert business.own.paused_flow_keys is not None
    assert len(business.own.paused_flow_keys) == PAUSED_MAX
    with pytest.raises(InvalidField, match="at most 100 together"):
        configured(world, {"paused_flow_keys": {"one-more": True}})
    assert world.businesses.read_whole(BIZ) == business
    listed = world.read_businesses.page(PageQuery(limit=10), ANYTHING.access)
    assert [one.business.biz_type for one in listed.businesses] == [BIZ]
    configured(world, {"paused_flow_keys": dict.fromkeys(business.own.paused_flow_keys)})
    assert world.businesses.read_whole(BIZ).own.paused_flow_keys is None


@each_case(
    ("member", "value"),
    [
        ("key", "~" * 129),
        ("flow_key", QUOTE * 129),
        ("tolerance_seconds", TOLERANCE_SECONDS_MAX + 1),
        ("expires_after_seconds", AHEAD_SECONDS_MAX + 1),
        ("labels", labels(WIDE) | {"one-more": "x"}),
        ("labels", {"l": WIDE * (VALUE_CHARACTERS_MAX + 1)}),
        ("callback", callback() | {"url": url("https://receiver.example/") + "x"}),
        ("callback", callback() | {"headers": headers() | {"x-00": QUOTE * 4_096}}),
        ("on_outcome", on_outcome() | {"callback": {"url": url("https://a.example/") + "x"}}),
        ("retry", {"delays_seconds": [1] * ATTEMPTS_MAX}),
        ("payload", "x" * PAYLOAD_BYTES_MAX),
    ],
)
def test_a_member_above_its_bound_is_refused(member: str, value: Any) -> None:
    body = {**json.loads(task_body()), member: value}
    with pytest.raises(Refusal) as refused_for:
        single_request(json.dumps(body), 0)
    assert refused_for.value.status in (413, 422)
    assert (refused_for.value.field or "").startswith(member)
