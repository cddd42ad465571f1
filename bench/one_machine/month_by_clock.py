"""A task a month ahead on a stack whose clock can be moved: it is really called."""

from bench.one_machine.duewheel import RunningDuewheel
from bench.one_machine.measuring import MONTH_MS, Measuring, Record


def month_by_clock(measuring: Measuring) -> Record:
    running = measuring.running
    assert isinstance(running, RunningDuewheel)
    running.call("POST", "/_local/clock", {"freeze": True})
    seconds = MONTH_MS // 1000
    task = {
        "biz_type": "bench",
        "delay_seconds": seconds,
        "callback": {"url": f"{running.url}/_local/inbox/month"},
    }
    status, made = running.call("POST", "/v1/tasks", task)
    assert status == 201, made
    running.call("POST", "/_local/clock", {"advance_seconds": seconds + 300})
    _, received = running.call("GET", "/_local/received/month")
    measuring.say(f"a month ahead, the clock moved: called {len(received['requests'])} times")
    return {
        "contender": measuring.contender.name,
        "case": "month by the clock",
        "calls": len(received["requests"]),
    }
