"""Deliveries to AWS services, on moto: the delivered data, and the outcome of each answer."""

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from threading import Event
from typing import Any

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError
from msgspec.structs import replace

from duewheel.rules.callbacks.aws.eventbridge import EventBridgeCallback
from duewheel.rules.callbacks.aws.lambda_function import LambdaCallback
from duewheel.rules.callbacks.aws.registry import AWS_TARGETS
from duewheel.rules.callbacks.aws.sns import SnsCallback
from duewheel.rules.callbacks.aws.sqs import SqsCallback
from duewheel.rules.callbacks.aws.stepfunctions import StepFunctionsCallback
from duewheel.rules.callbacks.aws.target import AwsTarget
from duewheel.rules.callbacks.completion import name_in
from duewheel.rules.callbacks.outcome import ANSWER_BYTES_MAX, Outcome, ReceivedAnswer, Verdict
from duewheel.rules.callbacks.payload_encoding import TOKEN_HEADER, AttemptName
from duewheel.rules.callbacks.types import Callback
from duewheel.rules.tasks.task import Task
from duewheel.rules.wheel.addresses import TOKEN_BYTES, address_at
from duewheel.stores.aws_clients import TargetClients
from duewheel.targets.aws.calls import AwsCalls
from duewheel.targets.by_type import Targets
from duewheel.targets.http.target import HttpTarget
from local.aws.emulator import Emulator
from local.aws.invocations import Answer, Invocation
from local.chaos.aws_faults import Fault, answered_by, do
from local.control.inbox import Inbox
from local.control.inbox_resources import InboxResources
from tests.support.cases import each_case
from tests.support.clock import NOON_MS, ManualClock

ACCOUNT = "us-east-1:123456789012"
QUEUE = "https://sqs.us-east-1.amazonaws.com/123456789012/inbox-queue"
TO_QUEUE = SqsCallback(QUEUE, attributes=(("team", "billing"),))
TO_FIFO_QUEUE = SqsCallback(f"{QUEUE}.fifo", group_id="order-17")
TO_TOPIC = SnsCallback(f"arn:aws:sns:{ACCOUNT}:inbox-topic", attributes=(("team", "billing"),))
TO_FIFO_TOPIC = SnsCallback(f"arn:aws:sns:{ACCOUNT}:inbox-topic.fifo", group_id="order-17")
TO_BUS = EventBridgeCallback("inbox-bus", "shop", "order due")
TO_FUNCTION = LambdaCallback("orders-close")
TO_MACHINE = StepFunctionsCallback(f"arn:aws:states:{ACCOUNT}:stateMachine:inbox-machine")
HOME = address_at(NOON_MS, bytes(TOKEN_BYTES))
TASK = replace(Task.at(HOME, "orders", NOON_MS, NOON_MS, TO_QUEUE), payload='{"order": 1.0}')


SECRET = b"tokens are sealed with this"


@dataclass
class Side:
    """The targets, and the data that the services received."""

    targets: Targets
    inbox: Inbox
    resources: InboxResources
    built: list[str]

    def deliver(
        self, callback: Callback, task: Task = TASK, timeout_seconds: float = 20
    ) -> Outcome:
        return asyncio.run(self.targets.call(callback, task, NOON_MS, timeout_seconds))

    def received(self, name: str) -> list[dict[str, Any]]:
        self.resources.collect(name)
        return self.inbox.received(name)


@pytest.fixture
def side(emulator: Emulator, clock: ManualClock) -> Side:
    clients = TargetClients(seconds_max=5, calls_at_once=10)
    built: list[str] = []

    def calls_of(target: AwsTarget) -> AwsCalls:
        def client() -> Any:
            built.append(target.client)
            return clients.of(target.client)

        return AwsCalls(target, client, clock)

    inbox = Inbox(clock.now_ms)
    resources = InboxResources(inbox, boto3.client)

    async def with_a_loop() -> HttpTarget:
        return HttpTarget(clock=clock, allowed_private_cidrs=())

    return Side(
        Targets(
            asyncio.run(with_a_loop()),
            {target.name: calls_of(target) for target in AWS_TARGETS},
            lambda: SECRET,
        ),
        inbox,
        resources,
        built,
    )


def of_task(attempt: int) -> dict[str, str]:
    return {
        "duewheel-task-id": TASK.task_id,
        "duewheel-due-at": "2027-01-15T08:00:00.000Z",
        "duewheel-attempt": str(attempt),
        "duewheel-biz-type": "orders",
    }


# Delivered data


@pytest.mark.parametrize(
    ("callback", "name"), [(TO_QUEUE, "inbox-queue"), (TO_TOPIC, "inbox-topic")]
)
def test_a_message_is_the_payload_with_attributes(
    side: Side, callback: Callback, name: str
) -> None:
    outcome = side.deliver(callback, replace(TASK, attempts=1))
    (message,) = side.received(name)
    assert (outcome.verdict, outcome.status_code) == (Verdict.DELIVERED, 200)
    assert outcome.note.startswith("message ")
    assert message["body"] == '{"order": 1.0}'
    assert message["headers"] == {"team": "billing", **of_task(2)}


@pytest.mark.parametrize("callback", [TO_QUEUE, TO_TOPIC])
def test_a_raw_message_is_the_string_of_the_payload(side: Side, callback: Any) -> None:
    side.deliver(replace(callback, is_raw=True), replace(TASK, payload='"<paid/>\\n"'))
    side.deliver(callback, replace(TASK, payload=None))
    name = "inbox-queue" if callback is TO_QUEUE else "inbox-topic"
    assert [message["body"] for message in side.received(name)] == ["<paid/>\n", "null"]


@pytest.mark.parametrize(
    ("callback", "name"), [(TO_FIFO_QUEUE, "inbox-queue.fifo"), (TO_FIFO_TOPIC, "inbox-topic.fifo")]
)
def test_a_fifo_drops_a_repeat_but_not_a_redrive(side: Side, callback: Callback, name: str) -> None:
    for task in (TASK, replace(TASK, attempts=1), replace(TASK, redrives=1)):
        assert side.deliver(callback, task).verdict is Verdict.DELIVERED
    messages = [message["headers"] for message in side.received(name)]
    assert [message["duewheel-attempt"] for message in messages] == ["1", "1"]
    assert {message["message-group-id"] for message in messages} == {"order-17"}


def test_an_event_has_the_payload_in_its_detail(side: Side) -> None:
    outcome = side.deliver(TO_BUS)
    (received,) = side.received("inbox-bus")
    event = json.loads(received["body"])
    assert outcome.verdict is Verdict.DELIVERED
    assert outcome.note == f"event {event['id']}"
    assert (event["source"], event["detail-type"]) == ("shop", "order due")
    assert event["detail"] == {
        "task_id": TASK.task_id,
        "biz_type": "orders",
        "due_at": "2027-01-15T08:00:00.000Z",
        "attempt": 1,
        "payload": {"order": 1.0},
    }


def test_a_function_gets_the_envelope_as_its_event(side: Side, emulator: Emulator) -> None:
    invoked: list[Invocation] = []
    emulator.answer_invocation = answering(b'{"closed": 17}', invoked)
    assert side.deliver(TO_FUNCTION) == Outcome(
        Verdict.DELIVERED, '{"closed": 17}', status_code=200
    )
    assert invoked[0].function == "orders-close"
    assert invoked[0].event["payload"] == {"order": 1.0}
    assert invoked[0].event["task_id"] == TASK.task_id
    assert b'"payload": {"order": 1.0}' in invoked[0].payload


@pytest.mark.parametrize(("size", "is_whole"), [(20, True), (ANSWER_BYTES_MAX + 1, False)])
def test_the_payload_of_a_function_is_its_answer(
    side: Side, emulator: Emulator, size: int, is_whole: bool
) -> None:
    payload = b'"' + b"x" * (size - 2) + b'"'
    emulator.answer_invocation = answering(payload, [])
    call = side.targets.call(TO_FUNCTION, TASK, NOON_MS, 20, wants_answer=True)
    answer = asyncio.run(call).answer
    assert answer == ReceivedAnswer({}, payload[:ANSWER_BYTES_MAX], is_whole)


def test_the_answer_of_a_function_is_read_without_the_completion_token(
    side: Side, emulator: Emulator
) -> None:
    emulator.answer_invocation = lambda invocation: (200, {}, invocation.payload)
    task = replace(TASK, payload=None)
    outcome = asyncio.run(side.targets.call(TO_FUNCTION, task, NOON_MS, 20, wants_answer=True))
    assert outcome.answer is not None
    assert b'"completion_token": "(secret)"' in outcome.answer.body


def test_a_queue_has_no_answer_to_keep(side: Side) -> None:
    call = side.targets.call(TO_QUEUE, TASK, NOON_MS, 20, wants_answer=True)
    assert asyncio.run(call).answer is None


def test_an_asynchronous_function_call_is_delivered_when_lambda_accepts_it(
    side: Side, emulator: Emulator
) -> None:
    accepted: list[Invocation] = []
    emulator.accept_invocation = accepted.append
    callback = LambdaCallback(f"arn:aws:lambda:{ACCOUNT}:function:orders-close:prod", is_async=True)
    assert side.deliver(callback) == Outcome(Verdict.DELIVERED, "", status_code=202)
    assert accepted[0].function == callback.function
    assert accepted[0].function_name == "orders-close"


def test_an_execution_gets_the_envelope_as_its_input(side: Side) -> None:
    outcome = side.deliver(TO_MACHINE)
    (got,) = side.received("inbox-machine")
    name = got["headers"]["execution-name"]
    assert outcome == Outcome(Verdict.DELIVERED, f"execution {name}", status_code=200)
    assert name.startswith(f"{TASK.task_id}-0-")
    assert json.loads(got["body"])["payload"] == {"order": 1.0}
    assert json.loads(got["body"])["task_id"] == TASK.task_id


def test_an_execution_whose_start_was_unanswered_is_started_once(side: Side) -> None:
    side.deliver(TO_MACHINE)
    again = side.deliver(TO_MACHINE, replace(TASK, attempts=1))
    assert again == Outcome(
        Verdict.DELIVERED, "accepted before: ExecutionAlreadyExists", status_code=400
    )
    assert len(side.received("inbox-machine")) == 1
    side.deliver(TO_MACHINE, replace(TASK, redrives=1))
    assert len(side.received("inbox-machine")) == 2


# Outcomes of answers


def answering(
    body: bytes, invoked: list[Invocation] | None = None, status: int = 200, **headers: str
) -> Callable[[Invocation], Answer]:
    def answer(invocation: Invocation) -> Answer:
        if invoked is not None:
            invoked.append(invocation)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return status, {"Content-Type": "application/json", **named}, body

    return answer


def test_a_failed_function_is_tried_again(side: Side, emulator: Emulator) -> None:
    error = b'{"errorMessage": "no such order", "errorType": "KeyError"}'
    emulator.answer_invocation = answering(error, X_Amz_Function_Error="Unhandled")
    assert side.deliver(TO_FUNCTION) == Outcome(
        Verdict.RETRY, "KeyError: no such order", status_code=200
    )


def test_a_function_that_answers_stop_is_not_tried_again(side: Side, emulator: Emulator) -> None:
    emulator.answer_invocation = answering(b'{"duewheel-stop": true}')
    assert side.deliver(TO_FUNCTION).verdict is Verdict.STOP


def test_only_the_beginning_of_a_long_answer_is_read(side: Side, emulator: Emulator) -> None:
    emulator.answer_invocation = answering(b'"' + b"a" * 3_000_000 + b'"')
    outcome = side.deliver(TO_FUNCTION)
    assert outcome.verdict is Verdict.DELIVERED
    assert outcome.note.startswith('"aaa')


@each_case(
    ("status", "code", "verdict"),
    [
        (404, "ResourceNotFoundException", Verdict.RETRY),
        (403, "AccessDeniedException", Verdict.RETRY),
        (429, "TooManyRequestsException", Verdict.RETRY),
        (502, "EC2UnexpectedException", Verdict.RETRY),
        (413, "RequestTooLargeException", Verdict.STOP),
        (400, "InvalidRequestContentException", Verdict.STOP),
    ],
)
def test_the_code_of_a_lambda_refusal_decides_the_outcome(
    side: Side, emulator: Emulator, status: int, code: str, verdict: Verdict
) -> None:
    calls: list[Invocation] = []
    emulator.answer_invocation = answering(
        b'{"Message": "why"}', calls, status, X_Amzn_ErrorType=code, Retry_After="7"
    )
    outcome = side.deliver(TO_FUNCTION)
    assert (outcome.verdict, outcome.status_code) == (verdict, status)
    assert outcome.note == f"{code}: why"
    assert outcome.retry_after_seconds == (7.0 if verdict is Verdict.RETRY else None)
    assert len(calls) == 1, "the SDK makes no retry of its own"


@each_case(
    "callback",
    [
        SqsCallback(QUEUE.replace("inbox", "no")),
        SnsCallback(f"arn:aws:sns:{ACCOUNT}:no-topic"),
        EventBridgeCallback("no-bus", "shop", "due"),
        StepFunctionsCallback(f"arn:aws:states:{ACCOUNT}:stateMachine:no-machine"),
    ],
)
def test_a_missing_resource_is_tried_again(side: Side, callback: Callback) -> None:
    outcome = side.deliver(callback)
    assert outcome.verdict is Verdict.RETRY
    assert re.search("not exist|NotFound|DoesNotExist", outcome.note, re.I)


@each_case("callback", [TO_QUEUE, TO_TOPIC, TO_BUS, TO_FUNCTION, TO_MACHINE])
@each_case("fault", [Fault.THROTTLED, Fault.FAILED, Fault.LOST])
def test_transient_errors_are_retried_by_the_task_and_not_by_the_sdk(
    side: Side, callback: Callback, fault: Fault
) -> None:
    tries = []

    def faulty(request: Any, handle: Any) -> Any:
        tries.append(request.url)
        return do(fault, request, handle, None)  # type: ignore[arg-type]

    with answered_by(faulty):
        outcome = side.deliver(callback)
    assert outcome.verdict is Verdict.RETRY
    assert outcome.note
    assert len(tries) == 1


def test_a_failed_connection_is_tried_again(side: Side) -> None:
    def cut(request: Any, handle: Any) -> Any:
        raise EndpointConnectionError(endpoint_url=request.url)

    with answered_by(cut):
        assert side.deliver(TO_QUEUE).verdict is Verdict.RETRY


def test_an_entry_refused_by_eventbridge_in_a_200_is_not_delivered(
    side: Side, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = {"ErrorCode": "ThrottlingException", "ErrorMessage": "slow down"}
    monkeypatch.setattr("moto.events.models.EventsBackend.put_events", lambda *_: [refused])
    outcome = side.deliver(TO_BUS)
    assert outcome == Outcome(Verdict.RETRY, "ThrottlingException: slow down", status_code=200)


def test_a_call_that_the_sdk_refuses_to_send_stops(side: Side) -> None:
    assert side.deliver(LambdaCallback("")).verdict is Verdict.STOP


def test_an_unsuitable_payload_is_not_sent(side: Side) -> None:
    outcome = side.deliver(replace(TO_QUEUE, is_raw=True))
    assert outcome.verdict is Verdict.STOP
    assert outcome.note.startswith("cannot be sent: the payload must be a string")
    assert side.received("inbox-queue") == []


def test_a_call_that_outlasts_its_timeout_is_given_up(side: Side, emulator: Emulator) -> None:
    over = Event()

    def never(_: Invocation) -> Answer:
        over.wait(20)
        return 200, {}, b"null"

    emulator.answer_invocation = never

    async def deliver() -> Outcome:
        outcome = await side.targets.call(TO_FUNCTION, TASK, NOON_MS, 0.05)
        over.set()
        return outcome

    assert asyncio.run(deliver()) == Outcome(Verdict.RETRY, "no whole reply within 0.05 s")
    assert side.targets.calls_in_flight == 0


# Clients and threads


def test_no_client_is_built_before_its_first_call(side: Side) -> None:
    side.deliver(TO_QUEUE)
    assert side.built == ["sqs"]


def test_a_hundred_calls_are_in_flight_at_once(side: Side, emulator: Emulator) -> None:
    """Each call is answered only when all of them have arrived."""
    asked, all_have_arrived = [], Event()

    def answer(invocation: Invocation) -> Answer:
        asked.append(invocation)
        if len(asked) == 100:
            all_have_arrived.set()
        return (200 if all_have_arrived.wait(20) else 500), {}, b"null"

    emulator.answer_invocation = answer

    async def deliver_all() -> list[Outcome]:
        calls = [side.targets.call(TO_FUNCTION, TASK, NOON_MS, 20) for _ in range(100)]
        return await asyncio.gather(*calls)

    assert {outcome.verdict for outcome in asyncio.run(deliver_all())} == {Verdict.DELIVERED}


# Work that goes on after the call


LONG = 600
EACH_LONG = [
    (replace(TO_QUEUE, complete_within_seconds=LONG), "inbox-queue"),
    (replace(TO_TOPIC, complete_within_seconds=LONG), "inbox-topic"),
    (replace(TO_BUS, complete_within_seconds=LONG), "inbox-bus"),
]


@pytest.mark.parametrize(("callback", "name"), EACH_LONG)
def test_a_message_whose_receiver_reports_its_end_has_a_token_of_its_attempt(
    side: Side, callback: Callback, name: str
) -> None:
    other = replace(TASK, home=address_at(NOON_MS, bytes([1]) * TOKEN_BYTES))
    outcomes = [side.deliver(callback, task) for task in (replace(TASK, attempts=2), other)]
    assert {(one.verdict, one.complete_within_seconds) for one in outcomes} == {
        (Verdict.DELIVERED, LONG)
    }
    tokens = []
    for message in side.received(name):
        in_event = json.loads(message["body"]).get("detail", {}) if name == "inbox-bus" else {}
        tokens.append(in_event.get("completion_token") or message["headers"][TOKEN_HEADER])
    assert name_in(tokens[0], TASK.task_id, SECRET) == AttemptName(0, 3)
    assert len(set(tokens)) == 2


def test_a_later_attempt_at_a_fifo_queue_is_no_repeat_if_the_end_is_reported(side: Side) -> None:
    callback = replace(TO_FIFO_QUEUE, complete_within_seconds=LONG)
    for task in (TASK, TASK, replace(TASK, attempts=1)):
        side.deliver(callback, task)
    assert len(side.received("inbox-queue.fifo")) == 2


@each_case(
    ("body", "verdict", "within"),
    [
        (b'{"duewheel-complete-within": 600}', Verdict.DELIVERED, 600),
        (b'{"duewheel-complete-within": 0}', Verdict.RETRY, None),
        (b'{"duewheel-complete-within": true}', Verdict.RETRY, None),
        (b'{"duewheel-complete-within": "600"}', Verdict.RETRY, None),
        (b"{}", Verdict.DELIVERED, None),
    ],
)
def test_the_answer_of_a_function_may_say_that_its_work_goes_on(
    side: Side, emulator: Emulator, body: bytes, verdict: Verdict, within: int | None
) -> None:
    invoked: list[Invocation] = []
    emulator.answer_invocation = answering(body, invoked)
    outcome = side.deliver(TO_FUNCTION)
    assert (outcome.verdict, outcome.complete_within_seconds) == (verdict, within)
    token = invoked[0].event["completion_token"]
    assert name_in(token, TASK.task_id, SECRET) == AttemptName(0, 1)
