"""Rules start the functions that no caller starts, the first time a minute after their creation."""

from botocore.credentials import Credentials

from tests.emulated.deployment import Deployment
from tests.emulated.observed import FAR_SECONDS, delivered, task, until
from tests.support.http_receiver import Receiver


def test_the_schedule_starts_the_scheduler_which_dispatches_a_far_task(
    plain: Deployment, operator: Credentials, receiver: Receiver
) -> None:
    """Only the schedule starts the scheduler."""
    body = task({"url": receiver.url}, FAR_SECONDS, "far")
    status, made = plain.call("POST", "/v1/tasks", body, signed_by=operator)
    assert status == 201, made

    until(lambda: receiver.bodies != [], "the callback")

    assert receiver.bodies == ['"far"']
    delivered(plain, made["task_id"], signed_by=operator)


def test_the_schedule_starts_the_sweeper(stack: Deployment) -> None:
    logs = stack.emulator.client("logs")
    group = stack.id("SweeperLogs")

    until(
        lambda: any(
            event["message"].startswith("END ")
            for event in logs.filter_log_events(logGroupName=group)["events"]
        ),
        "a run of the sweeper",
    )
