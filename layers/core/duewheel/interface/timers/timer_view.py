"""A timer in an answer. The payload is in it byte for byte, with its placeholders."""

from collections.abc import Iterable

from duewheel.interface.callbacks.callback_view import callback_view
from duewheel.interface.http import Answer, compact
from duewheel.rules.callbacks.retry import number_said, retry_members
from duewheel.rules.instants import rfc3339
from duewheel.rules.timers.timer import Timer
from duewheel.workflows.timers.read_timers import ShownTimer, TimerPage


def timer_answer(shown: ShownTimer, status: int = 200, **headers: str) -> Answer:
    tag = f'"{shown.timer.version}"'
    return Answer(status, timer_text(shown), headers={"etag": tag, **headers})


def timer_text(shown: ShownTimer) -> str:
    before, after = compact(_before_payload(shown.timer)), compact(_after_payload(shown))
    payload = "null" if shown.timer.rules.payload is None else shown.timer.rules.payload
    return f'{before[:-1]},"payload":{payload},{after[1:]}'


def timers_text(page: TimerPage) -> str:
    timers = ",".join(map(timer_text, page.timers))
    return f'{{"timers":[{timers}],"cursor":{compact(page.cursor)}}}'


def upcoming_view(seconds: Iterable[int]) -> dict[str, object]:
    return {"upcoming": [rfc3339(second * 1000) for second in seconds]}


def _before_payload(timer: Timer) -> dict[str, object]:
    rules, schedule = timer.rules, timer.rules.schedule
    return {
        "timer_id": timer.timer_id,
        "name": rules.name,
        "biz_type": timer.biz_type,
        "cron": schedule.cron,
        "dialect": None if schedule.cron is None else schedule.dialect.value,
        "every_seconds": schedule.every_seconds,
        "timezone": schedule.timezone,
        "start_at": _instant(schedule.start_second),
        "end_at": _instant(schedule.end_second),
        "max_runs": rules.max_runs,
        "jitter_seconds": rules.jitter_seconds,
    }


def _after_payload(shown: ShownTimer) -> dict[str, object]:
    timer, rules = shown.timer, shown.timer.rules
    expires_after = rules.expires_after_seconds
    counted = {} if shown.counters is None else {"counters": shown.counters}
    return {
        "callback": None if rules.callback is None else callback_view(rules.callback),
        "retry": None if rules.retry is None else retry_members(rules.retry),
        "expires_after_seconds": None if expires_after is None else number_said(expires_after),
        "dst_gap": rules.schedule.dst_gap.value,
        "dst_overlap": rules.schedule.dst_overlap.value,
        "misfire": rules.misfire.value,
        "grace_seconds": rules.grace_seconds,
        "overlap": rules.overlap.value,
        "exclude": list(rules.schedule.exclude),
        "disable_on_stop": rules.disable_on_stop,
        "enabled": timer.enabled,
        "state": shown.state.value,
        "next_at": _instant(shown.next_second),
        "version": timer.version,
        "created_at": rfc3339(timer.created_ms),
        "updated_at": rfc3339(timer.updated_ms),
        **counted,
    }


def _instant(second: int | None) -> str | None:
    return None if second is None else rfc3339(second * 1000)
