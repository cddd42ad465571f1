"""From the time pointer to the queue."""

import math
from collections import Counter
from collections.abc import Callable, Iterable

import pytest
from botocore.exceptions import EndpointConnectionError
from hypothesis import HealthCheck, given, strategies
from hypothesis import settings as hypothesis_settings
from msgspec.structs import replace

from duewheel.rules.wheel import addresses
from duewheel.rules.wheel.queue_messages import PageMessage, decode
from duewheel.rules.wheel.timing import AHEAD_MS, AHEAD_SECONDS, WAKE_MS
from duewheel.settings import SettingsError
from duewheel.stores.wheel import pointers
from duewheel.workflows.wheel.dispatch import PHASE_MS, STRIDE_SECONDS
from duewheel.workflows.wheel.run_leader import RESERVE_MS
from tests.support.recorder import Call
from tests.support.world import FAR_MS, World, time_for


def put_header(world: World, second: int, *, shards: int) -> None:
    world.dynamodb.put_item(
        TableName=world.settings.wheel_table,
        Item={
            "slot": {"S": addresses.slot(second, 0, world.settings.buckets)},
            "place": {"S": addresses.header_place(second)},
            "shards": {"N": str(shards)},
        },
    )


def test_an_empty_second_costs_one_probe_and_no_message(world: World) -> None:
    world.lead_once()
    position = world.pointer().position
    world.recorder.clear()
    world.clock.advance_ms(1_000)
    world.dispatch.tick(position, AHEAD_MS)

    assert world.recorder.operations() == ["Query"]


def test_a_leader_that_stays_writes_the_pointer_every_five_seconds(world: World) -> None:
    world.created(in_ms=200_000)
    world.clock.advance_ms(60_000)
    world.recorder.refuse("SendMessageBatch")
    world.lead.run("leader", time_for(41))

    queries = [call for call in world.recorder.calls if call.operation == "Query"]
    writes = [call for call in world.recorder.calls if "record" in call.request.get("Key", {})]
    claim_and_release = 2
    stayed_seconds = (world.clock.now_ms() - world.origin * 1000) / 1000 - 70
    assert stayed_seconds > 10
    assert len(queries) >= stayed_seconds, "each second is probed again when it opens"
    written = sum(call.operation == "UpdateItem" for call in writes)
    assert written - claim_and_release <= stayed_seconds / 5


def test_the_header_says_how_many_slices_are_dispatched(world: World) -> None:
    second = world.clock.now_ms() // 1000 + 60
    put_header(world, second, shards=4)
    world.dispatch_until(second)

    messages = [decode(message["Body"]) for message in world.receive()]
    assert messages == [
        PageMessage(second, 0, shards=4),
        *(PageMessage(second, shard) for shard in (1, 2, 3)),
    ]


def test_pointer_waits_for_a_second_that_the_queue_and_the_second_link_refuse(world: World) -> None:
    first, second = world.created(in_ms=200_000), world.created(in_ms=202_000)
    world.clock.set_ms(second.due_ms)
    world.recorder.refuse("SendMessageBatch", "Invoke")
    world.lead_once()
    assert world.pointer().position == first.due_ms // 1000 - 1
    assert world.messages_waiting() == 0

    world.recorder.before = None
    world.lead_once()
    assert world.pointer().position == second.due_ms // 1000 + AHEAD_SECONDS
    assert world.messages_waiting() == 2


@pytest.mark.exhaustive
def test_a_pointer_far_behind_catches_up_in_strides_without_skipping(world: World) -> None:
    tasks = [world.created(in_ms=200_000 + n * 97_000) for n in range(12)]
    world.dispatch_until(tasks[-1].due_ms // 1000 + 400)
    writes = [
        call
        for call in world.recorder.calls
        if call.operation == "UpdateItem" and "record" in call.request["Key"]
    ]
    world.drain()

    assert sorted(world.receiver.task_ids) == sorted(task.task_id for task in tasks)
    behind_seconds = 12 * 97 + 600 + AHEAD_SECONDS
    claims_and_releases = 2 * (behind_seconds // STRIDE_SECONDS + 2)
    assert len(writes) <= claims_and_releases + behind_seconds // STRIDE_SECONDS


def test_a_clock_that_runs_fast_cannot_take_the_pointer_along(world: World) -> None:
    world.lead_once()
    true_ms = world.clock.now_ms()
    fast = replace(world.dispatch, latest=[])
    world.clock.advance_ms(3_600_000)

    dispatched = true_ms // 1000
    for ahead_ms in (0, AHEAD_MS):
        fast.begin()
        world.aws_time._latest_ms = true_ms
        moved = fast.tick(dispatched, ahead_ms)
        assert dispatched <= moved <= (true_ms + ahead_ms) // 1000 + 3


def test_a_pointer_held_back_by_awss_time_keeps_asking_for_a_later_one(world: World) -> None:
    """AWS's clock is behind by more than this dispatch can make up for; with no reply in
    between, the last known time would stay old until the pointer's next write."""
    behind_ms = 3_400
    held_back = replace(world.dispatch, aws_ms=lambda: world.aws_time.latest_ms() - behind_ms)
    probed_ms: dict[int, int] = {}

    def note(call: Call) -> None:
        if call.operation == "Query":
            low = call.request["ExpressionAttributeValues"][":low"]["S"]
            probed_ms[addresses.second_of(low)] = world.clock.now_ms()
        elif call.operation == "SendMessageBatch":
            raise EndpointConnectionError(endpoint_url="https://sqs")

    world.created(in_ms=200_000)
    world.clock.advance_ms(60_000)
    world.recorder.before = note
    replace(world.lead, dispatch=held_back).run("leader", time_for(150))

    late_ms = [at_ms - second * 1000 for second, at_ms in sorted(probed_ms.items())]
    opened = [ms for ms in late_ms if -1_000 < ms < 5_000]
    assert len(opened) > 15
    assert max(opened[10:]) <= behind_ms - 3_000 + 1_200


def test_first_start_with_a_task_created_before_the_first_tick(world: World) -> None:
    """Nobody has ever moved a pointer; the API comes first."""
    due_now, soon = world.created(in_ms=0), world.created(in_ms=30_000)
    assert world.pointer().epoch == 0

    world.drain()
    world.come_up(soon)
    world.sweep_past(soon.due_ms // 1000)

    assert world.receiver.task_ids == [due_now.task_id, soon.task_id]


def test_origin_is_recorded_once_and_another_bucket_count_is_refused(world: World) -> None:

    later_ms = world.clock.now_ms() + 1_000_000
    assert world.pointers.shape(world.settings.buckets, later_ms, b"").origin == world.origin
    with pytest.raises(SettingsError, match=f"5000.*{world.settings.buckets}"):
        world.pointers.shape(5_000, later_ms, b"")


def test_two_seconds_that_share_a_bucket_do_not_mix(world: World) -> None:
    world.wire()
    buckets = world.settings.buckets
    near, far = world.created(in_ms=200_000), world.created(in_ms=200_000 + buckets * 1000)
    assert near.home.slot(buckets) == far.home.slot(buckets)

    world.come_up(near)
    world.sweep_past(near.due_ms // 1000)

    assert world.receiver.task_ids == [near.task_id]
    assert world.pointer(pointers.SWEEP).position >= near.due_ms // 1000


class PickyLinks:
    """Both links, of which neither takes the slice of this second."""

    def __init__(self, second: int) -> None:
        self.second = second
        self.asked: list[list[int]] = []

    def send(self, messages: Iterable[PageMessage], _: object) -> list[PageMessage]:
        sent = list(messages)
        self.asked.append([message.second for message in sent])
        return [message for message in sent if message.second == self.second]


def occupied_seconds(world: World, number: int) -> list[int]:
    tasks = [world.created(in_ms=(60 + n) * 1_000) for n in range(number)]
    return [task.due_ms // 1000 for task in tasks]


def test_of_a_stride_only_what_was_refused_is_sent_again_and_after_growing_pauses(
    world: World,
) -> None:
    seconds = occupied_seconds(world, 20)
    links = PickyLinks(seconds[3])
    world.clock.set_ms(seconds[-1] * 1_000)
    dispatch = replace(world.dispatch, message_sender=links, latest=[])
    lead = replace(world.lead, dispatch=dispatch)
    began_ms = world.clock.now_ms()
    lead.run("leader", lambda: max(0, 20_000 + began_ms + RESERVE_MS - world.clock.now_ms()))

    sent = Counter(second for asked in links.asked for second in asked)
    assert {second: sent[second] for second in seconds if second != links.second} == dict.fromkeys(
        [second for second in seconds if second != links.second], 1
    )
    assert 8 <= sent[links.second] <= 15, "five a second before"
    assert world.pointer().position == links.second - 1


def test_what_comes_up_behind_a_refused_message_is_handed_over_on_time(world: World) -> None:
    refused, *later = occupied_seconds(world, 6)
    links = PickyLinks(refused)
    dispatch = replace(world.dispatch, message_sender=links, latest=[], aws_ms=world.clock.now_ms)
    pointer = refused - 1
    for second in (refused, *later):
        world.clock.set_ms(second * 1_000)
        pointer = dispatch.tick(pointer)
        assert pointer == refused - 1
        assert second in links.asked[-1]
    links.second = -1
    world.clock.advance_ms(3_000)
    assert dispatch.tick(pointer) == later[-1] + 3
    assert links.asked[-1] == [refused]


def test_a_leader_that_begins_elsewhere_forgets_what_another_was_refused(world: World) -> None:
    first, second = occupied_seconds(world, 2)
    links = PickyLinks(first)
    dispatch = replace(world.dispatch, message_sender=links, latest=[], aws_ms=world.clock.now_ms)
    world.clock.set_ms(second * 1_000)
    assert dispatch.tick(first - 1) == first - 1
    dispatch.begin()
    assert dispatch.tick(first - 10) == first - 1
    assert links.asked[-1] == [first, second]


class TimedLinks:
    """Both links: when each second's messages were sent, and with which delay."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.sent: list[tuple[int, int, int]] = []  # second, sent at ms, delay in seconds
        self.refuses = False
        self.requests = 0

    def send(
        self, messages: Iterable[PageMessage], delay_seconds: Callable[[PageMessage], int]
    ) -> list[PageMessage]:
        self.requests += 1
        if self.refuses:
            return list(messages)
        now_ms = self.world.clock.now_ms()
        self.sent += [(each.second, now_ms, delay_seconds(each)) for each in messages]
        return []


def led_with(world: World, links: TimedLinks, until_ms: int) -> None:
    dispatch = replace(world.dispatch, message_sender=links, latest=[], aws_ms=world.clock.now_ms)
    lead = replace(world.lead, dispatch=dispatch)
    lead.run("leader", lambda: max(0, until_ms + RESERVE_MS - world.clock.now_ms()))


def ticked_with(world: World, links: TimedLinks, until_ms: int) -> None:
    """A leader that cannot get ahead dispatches what opens."""
    dispatch = replace(world.dispatch, message_sender=links, latest=[], aws_ms=world.clock.now_ms)
    pointer = world.clock.now_ms() // 1000
    while world.clock.now_ms() < until_ms:
        pointer = dispatch.tick(pointer)
        world.clock.set_ms(max(dispatch.next_tick_ms(pointer), world.clock.now_ms() + 1))


@pytest.mark.parametrize("first_ms", [0, 1, 499, 500, 501, 999])
def test_after_a_pause_the_message_of_a_slice_is_sent_one_lead_before_its_first_task_is_due(
    world: World, first_ms: int
) -> None:
    second = world.clock.now_ms() // 1000 + 60
    at_ms = second * 1000 - world.clock.now_ms()
    for ms in {first_ms, 999}:
        world.created(in_ms=at_ms + ms)
    world.clock.set_ms(second * 1000 - 5_000)
    links = TimedLinks(world)
    ticked_with(world, links, second * 1000 + 3_000)

    assert links.sent == [(second, second * 1000 + first_ms - world.settings.lead_ms, 0)]


def test_the_messages_of_several_slices_are_sent_one_lead_before_their_second(world: World) -> None:
    task = world.created(in_ms=60_900)
    second = task.due_ms // 1000
    put_header(world, second, shards=2)
    world.clock.set_ms(second * 1000 - 5_000)
    links = TimedLinks(world)
    ticked_with(world, links, second * 1000 + 2_000)

    opens_ms = second * 1000 - world.settings.lead_ms
    assert links.sent == [(second, opens_ms, 0)] * 2


def test_ahead_of_the_time_the_queue_delays_a_message_to_its_first_task(world: World) -> None:
    first = world.created(in_ms=(AHEAD_SECONDS + 60) * 1000 + 900)
    world.clock.set_ms(first.due_ms - 100_000)
    links = TimedLinks(world)
    led_with(world, links, world.clock.now_ms() + 1_000)

    assert [(second, delay) for second, _, delay in links.sent] == [(first.due_ms // 1000, 99)]


def test_ahead_of_the_time_no_message_is_early_by_more_than_a_phase(world: World) -> None:
    begins_ms = (AHEAD_SECONDS + 60) * 1000
    tasks = [world.created(in_ms=begins_ms + n * 1_037) for n in range(30)]
    world.clock.set_ms(tasks[0].due_ms - 100_000)
    links = TimedLinks(world)
    led_with(world, links, world.clock.now_ms() + 1_000)

    wanted_ms = {task.due_ms // 1000: task.due_ms - WAKE_MS for task in tasks}
    wanted_ms[tasks[0].due_ms // 1000] = tasks[0].due_ms - world.settings.lead_ms
    early = [wanted_ms[second] - sent - delay * 1000 for second, sent, delay in links.sent]
    assert len(early) == len(tasks)
    assert all(0 <= ms < PHASE_MS for ms in early)


def test_behind_another_slice_a_lone_one_needs_no_lead_and_a_crowd_does(world: World) -> None:
    tasks = [world.created(in_ms=FAR_MS + n * 2_000 + 700) for n in range(4)]
    seconds = [task.due_ms // 1000 for task in tasks]
    put_header(world, seconds[2], shards=2)
    world.clock.set_ms(tasks[0].due_ms - 100_000)
    links = TimedLinks(world)
    led_with(world, links, world.clock.now_ms() + 1_000)

    lead_ms = world.settings.lead_ms
    wanted_ms = {
        seconds[0]: tasks[0].due_ms - lead_ms,
        seconds[1]: tasks[1].due_ms - WAKE_MS,
        seconds[2]: seconds[2] * 1000 - lead_ms,  # of several slices the first may be due at once
        seconds[3]: tasks[3].due_ms - WAKE_MS,
    }
    assert sorted(second for second, _, _ in links.sent) == sorted([*seconds, seconds[2]])
    early = [wanted_ms[second] - sent - delay * 1000 for second, sent, delay in links.sent]
    assert all(0 <= ms < PHASE_MS for ms in early)


def test_ahead_of_the_time_a_queue_that_refuses_gets_two_requests_not_one_in_each_phase(
    world: World,
) -> None:
    begins_ms = (AHEAD_SECONDS + 60) * 1000
    tasks = [world.created(in_ms=begins_ms + n * 1_100) for n in range(10)]
    world.clock.set_ms(tasks[0].due_ms - 100_000)
    links = TimedLinks(world)
    links.refuses = True
    dispatch = replace(world.dispatch, message_sender=links, latest=[], aws_ms=world.clock.now_ms)
    before_ms = world.clock.now_ms()
    second = tasks[0].due_ms // 1000
    pointer = dispatch.tick(second - 1, AHEAD_MS)

    assert pointer == second - 1
    assert links.requests == 2
    assert world.clock.now_ms() - before_ms < PHASE_MS * 10


def test_an_early_message_that_is_refused_is_sent_again_after_a_pause(world: World) -> None:
    first, second = world.created(in_ms=60_900), world.created(in_ms=61_900)
    links = TimedLinks(world)
    dispatch = replace(world.dispatch, message_sender=links, latest=[], aws_ms=world.clock.now_ms)
    world.clock.set_ms(first.due_ms - world.settings.lead_ms)
    links.refuses = True
    pointer = dispatch.tick(first.due_ms // 1000 - 1)
    links.refuses = False
    for _ in range(4):
        world.clock.set_ms(dispatch.next_tick_ms(pointer))
        pointer = dispatch.tick(pointer)

    assert pointer >= second.due_ms // 1000
    again_ms = first.due_ms - world.settings.lead_ms + 200
    assert links.sent == [
        (first.due_ms // 1000, again_ms, 0),
        (second.due_ms // 1000, second.due_ms - world.settings.lead_ms, 0),
    ]


def test_who_takes_over_sends_what_the_leader_before_held_early(world: World) -> None:
    task = world.created(in_ms=200_900)
    second = task.due_ms // 1000
    world.clock.set_ms(second * 1000)
    assert world.dispatch.tick(second - 1) == second - 1
    assert world.messages_waiting() == 0
    world.clock.set_ms(task.due_ms)
    world.lead_once("next")
    world.drain()

    assert world.receiver.task_ids == [task.task_id]


@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(instants=strategies.lists(strategies.integers(0, 1_999), min_size=1, max_size=6))
def test_wherever_in_their_seconds_tasks_are_due_they_are_called_at_their_milliseconds(
    world: World, instants: list[int]
) -> None:
    world.receiver.received.clear()
    begins_ms = (world.clock.now_ms() // 1000 + 200) * 1000
    tasks = [world.created(in_ms=begins_ms + ms - world.clock.now_ms()) for ms in instants]
    world.clock.set_ms(begins_ms - AHEAD_MS + 2_000)
    world.pointers.skip_to(pointers.TIME, world.origin, begins_ms // 1000 - 1)
    world.lead_once()
    while visible_ms := world.emulator.messages_visible_at_ms(world.settings.slice_queue_url):
        world.clock.set_ms(max(world.clock.now_ms(), math.ceil(min(visible_ms))))
        world.drain()

    called = sorted((one.task_id, one.at_ms) for one in world.receiver.received)
    assert called == sorted((task.task_id, task.due_ms) for task in tasks)
