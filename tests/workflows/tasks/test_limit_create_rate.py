"""A business creates as many tasks as its limit allows, over all processes; a refusal contains the
time to wait."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from duewheel.rules.businesses.settings import Business, Own
from duewheel.rules.preconditions import Precondition
from duewheel.rules.refusals import Refusal, TooManyCreates, UnreadableItem
from duewheel.rules.tasks.idempotency import idempotent_request
from duewheel.rules.tasks.task import Made
from duewheel.rules.tasks.updates import Change
from duewheel.rules.timers.requests import named_timer
from duewheel.stores import registry_keys
from duewheel.stores.businesses.rate_limits import CREATES
from duewheel.wiring.changing import pause_task
from duewheel.workflows.tasks.check_admission import Admission, LimitCreateRate
from duewheel.workflows.tasks.create_tasks import CreateTasks
from tests.support.damage import edit
from tests.support.operations import done
from tests.support.timers import made
from tests.support.world import CALLER, FAR_MS, World

TEN = {"creates_per_second": 10.0}


def limited(world: World, **settings: object) -> Business:
    return world.configured("orders", **(settings or TEN))


def process_of(world: World) -> CreateTasks:
    """Another process, which does not share the block of turns that it has reserved."""
    admission = Admission(world.business_cache, LimitCreateRate(world.clock, world.turns))
    return replace(world.create, admission=admission)


def granted(world: World, number: int, create: CreateTasks | None = None) -> int:
    made = (create or world.create).store([world.placed(world.new()) for _ in range(number)])
    return sum(isinstance(one, Made) for one in made)


def turn_writes(world: World) -> int:
    return sum(
        call.operation == "UpdateItem"
        and call.request["TableName"] == world.settings.registry_table
        for call in world.recorder.calls
    )


@pytest.mark.parametrize(("per_second", "at_once"), [(10.0, 10), (9.2, 10), (0.1, 1)])
def test_after_a_pause_as_many_may_come_at_once_as_in_a_second(
    world: World, per_second: float, at_once: int
) -> None:
    limited(world, creates_per_second=per_second)
    for _ in range(2):
        assert granted(world, 25) == at_once
        assert granted(world, 5) == 0
        world.clock.advance_ms(60_000)


def test_creates_are_limited_to_the_rate(world: World) -> None:
    limited(world)
    granted(world, 10)
    world.clock.advance_ms(500)
    assert granted(world, 25) == 5


def test_a_refusal_says_when_to_try_again(world: World) -> None:
    limited(world, creates_per_second=0.1)
    world.created()
    with pytest.raises(TooManyCreates) as refused:
        world.created()
    assert refused.value.retry_after_seconds == 10
    world.clock.advance_ms(9_000)
    with pytest.raises(TooManyCreates):
        world.created()
    world.clock.advance_ms(1_000)
    world.created()


def test_a_damaged_record_of_a_business_refuses_no_task_of_another(world: World) -> None:
    limited(world)
    edit(world, registry_keys.turns(CREATES, "orders"), version={"S": "one"})
    tasks = [world.placed(world.new(biz_type=name)) for name in ("orders", "mails")]
    refused, made = world.create.store(tasks)
    assert isinstance(refused, UnreadableItem)
    assert isinstance(made, Made)


def test_a_batch_past_the_limit_creates_its_first_tasks_and_refuses_each_of_the_others(
    world: World,
) -> None:
    limited(world, creates_per_second=3.0)
    news = [world.new(key=None if number % 2 else f"key-{number}") for number in range(4)]
    others = [replace(news[0], biz_type="mails", key=None)] * 2
    results = world.create([*news, *others])
    refused = [result for result in results if isinstance(result, Refusal)]
    assert [type(result) for result in refused] == [TooManyCreates]
    assert all(isinstance(result, Made) for result in results[-2:]), "another business has no limit"


@pytest.mark.exhaustive
def test_many_processes_share_one_limit(world: World) -> None:
    limited(world)
    processes = [process_of(world) for _ in range(5)]
    made = sum(granted(world, 3, process) for process in processes * 4)
    assert made == 10
    for _ in range(10):
        world.clock.advance_ms(1_000)
        made += sum(granted(world, 3, process) for process in processes * 2)
    assert 10 + 10 * 10 - 5 * 2 <= made <= 10 + 10 * 10, "except for unused turns of blocks"


def test_many_creates_share_one_write_of_the_limit(world: World) -> None:
    limited(world, creates_per_second=400.0)
    granted(world, 1)
    world.recorder.clear()
    for _ in range(200):
        world.created()
    assert turn_writes(world) == 2, "a hundred turns at a time"


def test_turns_that_a_process_has_not_used_within_a_second_expire(world: World) -> None:
    limited(world, creates_per_second=100.0)
    assert granted(world, 1) == 1
    world.clock.advance_ms(3_600_000)
    assert granted(world, 200) == 100


@pytest.mark.exhaustive
def test_a_change_of_the_limit_takes_effect_within_seconds(world: World) -> None:
    limited(world)
    assert granted(world, 30) == 10
    world.configured("orders", creates_per_second=1_000.0)
    world.clock.advance_ms(5_000)
    assert granted(world, 500) == 500
    world.configured("orders", creates_per_second=None)
    world.clock.advance_ms(5_000)
    assert granted(world, 1_500) == 1_500


def test_a_business_that_was_deleted_and_configured_again_has_its_new_limit(world: World) -> None:
    for _ in range(3):
        limited(world, creates_per_second=0.01)
    assert granted(world, 5) == 1
    assert world.businesses.delete(world.businesses.read_whole("orders"), CALLER)
    world.business_cache.forget("orders")
    world.clock.advance_ms(1_000)
    limited(world, creates_per_second=10.0)
    assert granted(world, 15) == 10


def test_beats_of_a_watchdog_take_no_turn_of_the_limit(world: World) -> None:
    limited(world, creates_per_second=0.001)
    task = world.created_by_key(world.new(key="order-17")).task
    for _ in range(3):
        world.clock.advance_ms(10)
        assert not world.keyed.upsert(world.new(key="order-17", digest="same")).is_new
    assert world.read(task).version > 1


Act = Callable[[], object]


def run(world: World, number: int) -> Act:
    task = world.created(FAR_MS + number)
    return lambda: world.change.run(task.task_id)


def move(world: World, number: int) -> Act:
    task = world.created(FAR_MS + number)
    return lambda: world.change(task.task_id, Change(due_ms=task.due_ms - 60_000))


def upsert(world: World, number: int) -> Act:
    key = f"key-{number}"
    world.created_by_key(world.new(FAR_MS, key=key))
    return lambda: world.keyed.upsert(world.new(60_000, key=key, digest="another"))


def redrive(world: World, number: int) -> Act:
    task = world.created(FAR_MS + number)
    world.cancel(task.task_id)
    return lambda: world.redrive(task.task_id)


def run_timer(world: World, _: int) -> Act:
    timer = made(world, 60)
    return lambda: world.run_timer(timer.timer_id)


def create_timer(world: World, _: int) -> Act:
    return lambda: made(world, 60)


def put_timer(world: World, number: int) -> Act:
    body = '{"cron": "0 * * * *", "callback": {"url": "https://receiver.example/hook"}}'
    named = named_timer(body, "orders", f"n{number}")
    return lambda: world.timer_by_name.put(named, Precondition(), by=CALLER)


@pytest.mark.parametrize("way", [run, move, upsert, redrive, run_timer, create_timer, put_timer])
def test_every_other_way_to_have_a_call_made_takes_a_turn(
    world: World, way: Callable[[World, int], Act]
) -> None:
    acts = [way(world, number) for number in range(2)]
    limited(world, creates_per_second=0.001)
    world.clock.advance_ms(5_000)
    acts[0]()
    with pytest.raises(TooManyCreates):
        acts[1]()


def test_a_move_to_a_later_instant_a_pause_and_its_end_take_no_turn(world: World) -> None:
    task = world.created(FAR_MS)
    limited(world, creates_per_second=0.001)
    for _ in range(3):
        task = world.change(task.task_id, Change(due_ms=task.due_ms + 60_000))
        pause_task()(task.task_id, None, CALLER)
        pause_task().resume(task.task_id)


def test_a_redrive_by_an_operation_takes_turns_and_goes_on(world: World) -> None:
    tasks = [world.created(FAR_MS + number) for number in range(5)]
    for task in tasks:
        world.cancel(task.task_id)
    limited(world, creates_per_second=1.0)
    began_ms = world.clock.now_ms()
    operation = done(world, "redrive", ids=[task.task_id for task in tasks])
    assert operation.counts.changed == 5
    assert world.clock.now_ms() - began_ms >= 4_000


def test_a_repeat_of_a_run_of_a_timer_finds_its_run_beyond_the_limit(world: World) -> None:
    timer = made(world, 60)
    limited(world, creates_per_second=0.001)
    once = idempotent_request(CALLER, "one", f"/v1/timers/{timer.timer_id}/run", "", is_single=True)
    assert world.run_timer(timer.timer_id, once) == world.run_timer(timer.timer_id, once)


def test_without_a_limit_nothing_is_written_for_it(world: World) -> None:
    granted(world, 30)
    assert turn_writes(world) == 0
    assert Own().creates_per_second is None
