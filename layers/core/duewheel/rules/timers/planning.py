"""Planning: how a timer writes its occurrences ahead, through the wheel itself.

A timer that is enabled has a chain: an internal task that is due before the end of its plan, and
writes more. At most `PLANNED_MAX` occurrences are planned ahead, and none more than two hours: so
many are cancelled one by one if the timer is disabled, deleted or changed.

The address of an occurrence is a function of its timer, its instants and the shard count of its
second. The chain records the shard counts before it writes occurrences. So planning again, in part
or by another chain, produces the same addresses.
"""

from collections.abc import Mapping, Sequence
from hashlib import blake2s

from msgspec import Struct
from msgspec.structs import replace

from duewheel.rules.tasks.task import UNSIZED, Occurrence, Plan, Sizes, Task
from duewheel.rules.timers.schedule import next_second, seconds_from
from duewheel.rules.timers.timer import Misfire, Timer
from duewheel.rules.tolerance import Window, shared_ms
from duewheel.rules.wheel.addresses import TOKEN_BYTES, Address, address_at
from duewheel.rules.wheel.sharding import Placement, shard_for

PLANNED_MAX = 48  # occurrences of one timer ahead of now, and those that one step writes
PLANNED_SECONDS = 7_200  # ahead of now, at most
# The next step begins when a quarter of what may be planned is left, or up to another quarter
# earlier: timers on the same minute are not planned at the same moment.
LEFT_MIN = PLANNED_MAX // 4
LEFT_SECONDS_MIN = PLANNED_SECONDS // 4
STEP_SECONDS_MAX = 86_400  # every timer is planned at least once a day
MISFIRES_MAX = 10_000  # counted in one step: a fifth of a second for a timer of every second
MISFIRES_WRITTEN = 25  # the latest of them, which are listed; earlier ones are only counted


class Step(Struct, frozen=True):
    """What a chain does when it falls due: write these occurrences, then become this, and fall due
    again at that instant. None: there are no more. `misfired`: the seconds of those that are
    late by more than the grace. They are counted and not written, in a step of their own: so an
    occurrence that may have been written is never counted here."""

    occurrences: tuple[Occurrence, ...]
    plan: Plan
    next_ms: int | None
    misfired: Sequence[int] = ()


def chain_home(timer: Timer, placement: Placement, random_bytes: bytes) -> Task:
    """The task that plans the timer from now on: due at once. Its plan starts after the current
    second."""
    plan = Plan(timer.timer_id, placement.now_ms // 1000 + 1, timer.numbered, timer.sizes)
    return replace(_due_now(timer, placement, random_bytes), plan=plan)


def next_step(timer: Timer, plan: Plan, now_ms: int) -> Step:
    """Plan two hours ahead of now, or as many occurrences as may be planned. For late ones that do
    not fit into one step the chain falls due again at once."""
    misfired = _misfired(timer, plan, now_ms // 1000)
    if not misfired:
        return _step_ahead(timer, plan, now_ms)
    until, numbered = misfired[-1] + 1, plan.numbered + len(misfired)
    after = replace(plan, planned_until_second=until, numbered=numbered)
    return Step((), after, now_ms, misfired)


def _misfired(timer: Timer, plan: Plan, now: int) -> list[int]:
    """The seconds that are certainly not called, except the latest of them. The latest are judged
    one by one, since a later one is due behind each of these. So are those that another planner may
    have written: they are counted when they are judged."""
    rules = timer.rules
    if rules.misfire is Misfire.ALL or plan.planned_until_second < plan.sizes.until_second:
        return []
    last = now - rules.grace_seconds - rules.late_seconds_max - 1
    most = MISFIRES_MAX + MISFIRES_WRITTEN
    late = seconds_from(rules.schedule, plan.planned_until_second, most, last)
    return late[: _runs_left(timer, plan)][:-MISFIRES_WRITTEN]


def _step_ahead(timer: Timer, plan: Plan, now_ms: int) -> Step:
    schedule, now = timer.rules.schedule, now_ms // 1000
    first, last = plan.planned_until_second, now + PLANNED_SECONDS - 1
    room = PLANNED_MAX - len(seconds_from(schedule, now + 1, PLANNED_MAX, first - 1))
    seconds = seconds_from(schedule, first, room, last)[: _runs_left(timer, plan)]
    occurrences = tuple(
        Occurrence(timer.timer_id, second, number=number)
        for number, second in enumerate(seconds, plan.numbered + 1)
    )
    is_full = len(seconds) == room
    until = max(first, last + 1)
    if is_full:
        until = seconds[-1] + 1 if seconds else first
    after = replace(plan, planned_until_second=until, numbered=plan.numbered + len(seconds))
    following = next_second(schedule, until - 1) if _runs_left(timer, after) != 0 else None
    if following is None:
        until = seconds[-1] + 1 if seconds else first
        over = until + timer.rules.late_seconds_max
        # A chain is planned when its slice opens, which is before its instant.
        next_ms = over * 1000 if over > now + 1 else None
        return Step(occurrences, replace(after, planned_until_second=until), next_ms)
    return Step(occurrences, after, _next_ms(timer, after, following, now_ms, is_full=is_full))


def _next_ms(timer: Timer, plan: Plan, following: int, now_ms: int, *, is_full: bool) -> int:
    """When the chain falls due again: at once if too few are ahead, since others were late.
    `following`: the first second that is not planned."""
    now = now_ms // 1000
    if is_full:
        until = plan.planned_until_second
        planned = seconds_from(timer.rules.schedule, now + 1, PLANNED_MAX, until - 1)
        left = LEFT_MIN + _spread(timer.timer_id, LEFT_MIN)
        return planned[-left] * 1000 if len(planned) > left else now_ms
    left_seconds = LEFT_SECONDS_MIN + _spread(timer.timer_id, LEFT_SECONDS_MIN)
    second = min(following - left_seconds, now + STEP_SECONDS_MAX)
    return max(second * 1000, now_ms)


def without_shards(timer: Timer, plan: Plan, step: Step) -> dict[int, int]:
    """The due seconds, by nominal second, for whose homes no planner has recorded a shard count."""
    return {
        occurrence.second: due_second_of(timer, occurrence.second)
        for occurrence in step.occurrences
        if occurrence.second >= plan.sizes.until_second
    }


def with_shards(
    chain: Task, plan: Plan, step: Step, shards: Mapping[tuple[int, int], int], now_ms: int
) -> tuple[Task, Step]:
    """The chain with the shard counts of all that the step writes, to be written before the first
    occurrence; and the step with these counts."""
    # Seconds that are past and planned are not planned again.
    kept = plan.sizes.kept_from(min(plan.planned_until_second, now_ms // 1000))
    sizes = Sizes(step.occurrences[-1].second + 1, {**kept.shards, **shards})
    changed = replace(
        chain, plan=replace(plan, sizes=sizes), updated_ms=now_ms, version=chain.version + 1
    )
    return changed, replace(step, plan=replace(step.plan, sizes=sizes))


def moved_on(chain: Task, step: Step, entry: Address, next_ms: int, now_ms: int) -> Task:
    return replace(
        chain,
        plan=step.plan,
        entry=entry,
        next_ms=next_ms,
        updated_ms=now_ms,
        version=chain.version + 1,
    )


def due_second(timer_id: str, second: int, jitter_seconds: int) -> int:
    """Of the occurrence of this second, by jitter alone: the same in every process."""
    if not jitter_seconds:
        return second
    return second + _hash(f"{timer_id} {second}", b"jitter") % (jitter_seconds + 1)


def occurrence_home(timer_id: str, second: int, due: int, shards: int) -> Address:
    hashed = blake2s(
        f"{timer_id} {second} {due}".encode(), digest_size=TOKEN_BYTES, person=b"timer"
    )
    token = hashed.digest()
    return address_at(due * 1000, token, shard=shard_for(token, shards))


def occurrence_task(
    timer: Timer, occurrence: Occurrence, now_ms: int, sizes: Sizes = UNSIZED
) -> Task:
    """The task of an occurrence, its own entry. Its timer decides at the call what is called.
    Priority, labels and who is told of its outcome are those of the timer until then."""
    due = due_second_of(timer, occurrence.second)
    home = occurrence_home(timer.timer_id, occurrence.second, due, sizes.of(occurrence.second, due))
    task = Task.at(home, timer.biz_type, home.instant_ms, now_ms)
    requested_ms = _jittered_second(timer, occurrence.second) * 1000
    return replace(
        task,
        occurrence=occurrence,
        priority=timer.rules.priority,
        labels=timer.rules.labels,
        on_outcome=timer.rules.on_outcome,
        requested_ms=None if requested_ms == task.due_ms else requested_ms,
    )


def manual_task(timer: Timer, placement: Placement, random_bytes: bytes) -> Task:
    """An occurrence that was requested by hand, due now."""
    occurrence = Occurrence(timer.timer_id, placement.now_ms // 1000, manual=True)
    due_now = _due_now(timer, placement, random_bytes)
    return replace(
        due_now,
        occurrence=occurrence,
        priority=timer.rules.priority,
        labels=timer.rules.labels,
        on_outcome=timer.rules.on_outcome,
    )


def _due_now(timer: Timer, placement: Placement, random_bytes: bytes) -> Task:
    now_ms = placement.now_ms
    return Task.at(placement.address(now_ms, random_bytes), timer.biz_type, now_ms, now_ms)


def due_second_of(timer: Timer, second: int) -> int:
    """Of the occurrence of this second, with jitter and tolerance. Only the timer's own tolerance
    counts, and a crowd is not spread, so that it is the same whenever it is computed."""
    tolerance = timer.rules.tolerance_seconds
    window = Window(_jittered_second(timer, second) * 1000, timer.biz_type, tolerance)
    return shared_ms(window, tolerance) // 1000


def _jittered_second(timer: Timer, second: int) -> int:
    return due_second(timer.timer_id, second, timer.rules.jitter_seconds)


def _runs_left(timer: Timer, plan: Plan) -> int | None:
    if timer.rules.max_runs is None:
        return None
    return max(0, timer.rules.max_runs - plan.numbered)


def _spread(timer_id: str, most: int) -> int:
    return _hash(timer_id, b"spread") % (most + 1)


def _hash(text: str, person: bytes) -> int:
    return int.from_bytes(blake2s(text.encode(), digest_size=8, person=person).digest(), "big")
