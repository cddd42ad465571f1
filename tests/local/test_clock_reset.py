"""The local stack's clock is brought back to real time. Each test has a stack of its own."""

from local.control.clock import real_ms
from local.stack import LocalStack
from tests.support.service import Service, ms_of

DAY_SECONDS = 86_400


def test_a_clock_behind_real_time_is_brought_back_with_its_data() -> None:
    with LocalStack(start_ms=real_ms() - 3_600_000, frozen=True) as stack:
        service = Service(stack.url)
        task = service.create("box", delay_seconds=60)
        assert service.call("POST", "/_local/clock", {"reset": True})[1]["kept"] is True
        assert abs(service.now_ms() - real_ms()) < 60_000
        assert service.task(task)["status"] == "delivered"
        assert service.received_at_ms("box") == [ms_of(task["due_at"])]


def test_a_clock_ahead_of_real_time_goes_back_and_the_stack_begins_anew() -> None:
    with LocalStack() as stack:
        service = Service(stack.url)
        service.advance(7 * DAY_SECONDS)
        old = service.create("box", delay_seconds=DAY_SECONDS)
        assert service.call("POST", "/_local/clock", {"reset": True})[1]["kept"] is False
        assert abs(service.now_ms() - real_ms()) < 60_000
        assert service.call("GET", f"/v1/tasks/{old['task_id']}")[0] == 404
        new = service.create("box", delay_seconds=5)
        assert service.advance(5) == 1
        assert service.received_at_ms("box") == [ms_of(new["due_at"])]


def test_a_stack_with_keys_does_not_begin_anew() -> None:
    with LocalStack(asks_for_keys=True) as stack:
        service = Service(stack.url)
        service.advance(DAY_SECONDS)
        status, problem = service.call("POST", "/_local/clock", {"reset": True})
        assert (status, "key" in problem["detail"]) == (409, True)
