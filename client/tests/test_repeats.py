"""Which calls the client repeats, on scripted answers, without network and waiting."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from duewheel import Duewheel, NewTask, errors
from duewheel._sync.transport import Transport
from duewheel.calls import ALWAYS, Call
from duewheel.errors import Unreachable, problem_from
from duewheel.retrying import Failure, Tries
from tests.support import Script, gateway, made, problem

LOST = httpx.ReadTimeout("lost")
BROKEN = httpx.RemoteProtocolError("disconnected")
NOT_SENT = httpx.ConnectError("refused")
HOUR = timedelta(hours=1)
Scripted = Callable[..., tuple[Duewheel, Script]]


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """The pauses of the client. They move the clock instead of waiting."""
    waited: list[float] = []
    monkeypatch.setattr(Transport, "pause", lambda _, seconds: waited.append(seconds))
    monkeypatch.setattr("duewheel._sync.transport.time.monotonic", lambda: sum(waited))
    monkeypatch.setattr("duewheel._sync.creating.time.monotonic", lambda: sum(waited))
    return waited


@pytest.fixture
def scripted(pauses: list[float]) -> Scripted:
    def client(*answers: httpx.Response | Exception) -> tuple[Duewheel, Script]:
        script = Script(*answers)
        return Duewheel("http://duewheel.example", transport=script.transport), script

    return client


LOST_ANSWERS = pytest.mark.parametrize(
    "lost",
    [
        LOST,
        BROKEN,
        httpx.WriteError("cut off"),
        gateway(500),
        gateway(502),
        gateway(503),
        gateway(504),
        problem("internal", 500),
        httpx.Response(502, content=b"<html>"),
    ],
    ids=["timeout", "lost", "cut", "500", "502", "503", "504", "internal", "html"],
)
NOTHING_WRITTEN = pytest.mark.parametrize(
    "refused",
    [problem("unavailable", 503), problem("too-many-creates", 429), gateway(429), NOT_SENT],
    ids=["unavailable", "creates", "throttled", "refused"],
)


@NOTHING_WRITTEN
def test_a_request_that_wrote_no_task_is_repeated(
    scripted: Scripted, refused: httpx.Response | Exception
) -> None:
    client, script = scripted(refused, refused, made())
    assert client.tasks.create("orders", delay=1).status == "pending"
    assert len(script.requests) == 3


@LOST_ANSWERS
def test_a_plain_create_whose_answer_is_lost_is_not_repeated(
    scripted: Scripted, lost: httpx.Response | Exception
) -> None:
    client, script = scripted(lost, made())
    with pytest.raises(errors.OutcomeUnknown):
        client.tasks.create("orders", delay=HOUR)
    assert len(script.requests) == 1


@LOST_ANSWERS
def test_a_create_once_is_repeated_under_one_idempotency_key(
    scripted: Scripted, lost: httpx.Response | Exception
) -> None:
    client, script = scripted(lost, problem("idempotency-key-in-use", 409), made())
    client.tasks.create("orders", delay=1, once=True)
    (key,) = set(script.headers("idempotency-key"))
    assert key
    assert len({request.content for request in script.requests}) == 1


def test_two_creates_once_have_two_idempotency_keys(scripted: Scripted) -> None:
    client, script = scripted(made())
    for _ in range(2):
        client.tasks.create("orders", delay=1, once=True)
    assert len(set(script.headers("idempotency-key"))) == 2


@LOST_ANSWERS
def test_a_keyed_create_is_repeated_while_its_task_is_live(
    scripted: Scripted, lost: httpx.Response | Exception
) -> None:
    client, script = scripted(lost, made(200))
    client.tasks.create("orders", delay=HOUR, key="order-17")
    assert script.headers("idempotency-key") == [None, None]


@pytest.mark.parametrize(
    "soon",
    [
        {"delay": 30},
        {"due_at": datetime.now(UTC) - HOUR},
        {"due_at": datetime.now(UTC) + timedelta(seconds=50)},
        {"due_ms": 1},
    ],
)
def test_a_keyed_create_is_not_repeated_once_its_task_may_have_been_called(
    scripted: Scripted, soon: dict[str, object]
) -> None:
    client, script = scripted(LOST, made(201))
    with pytest.raises(errors.OutcomeUnknown):
        client.tasks.create("orders", key="order-17", **soon)  # type: ignore[arg-type]
    with pytest.raises(errors.OutcomeUnknown):
        Duewheel(transport=Script(LOST, made()).transport).tasks.put("orders", "o", **soon)  # type: ignore[arg-type]
    assert len(script.requests) == 1


def test_reads_cancels_beats_and_puts_are_repeated(scripted: Scripted) -> None:
    for call in (
        lambda client: client.tasks.get("AQ"),
        lambda client: client.tasks.cancel("AQ"),
        lambda client: client.tasks.cancel_by_key("orders", "o"),
        lambda client: client.tasks.put("orders", "o", delay=HOUR),
        lambda client: client.tasks.watchdog("orders", "o", 1).beat(),
    ):
        client, script = scripted(LOST, gateway(504), made())
        assert call(client).status == "pending"
        assert len(script.requests) == 3


@pytest.mark.parametrize("call", ["run", "redrive", "change"])
def test_calls_whose_repeat_has_an_effect_are_not_repeated(scripted: Scripted, call: str) -> None:
    client, script = scripted(LOST, made())
    with pytest.raises(errors.OutcomeUnknown) as unknown:
        getattr(client.tasks, call)("AQ")
    assert isinstance(unknown.value.__cause__, errors.Unreachable)
    assert len(script.requests) == 1


def test_a_change_with_a_version_is_not_repeated(scripted: Scripted) -> None:
    business = httpx.Response(200, json={"biz_type": "orders", "version": 2})
    client, script = scripted(LOST, business)
    with pytest.raises(errors.OutcomeUnknown):
        client.businesses.pause("orders", if_match=1)
    assert script.headers("if-match") == ['"1"']
    client, script = scripted(LOST, business)
    assert client.businesses.pause("orders").version == 2


def test_an_earlier_try_stays_in_doubt_when_the_last_wrote_no_change(
    scripted: Scripted,
) -> None:
    client, _ = scripted(LOST, problem("unavailable", 503))
    with pytest.raises(errors.OutcomeUnknown):
        client.tasks.cancel("AQ")


def test_a_refusal_of_a_repeat_holds_for_the_first_try(scripted: Scripted) -> None:
    client, _ = scripted(LOST, problem("already-settled", 409))
    with pytest.raises(errors.AlreadySettled):
        client.tasks.cancel("AQ")


def test_a_read_without_an_answer_is_never_in_doubt(scripted: Scripted) -> None:
    client, _ = scripted(LOST)
    with pytest.raises(errors.Unreachable):
        client.tasks.get("AQ")
    client, _ = scripted(gateway(504))
    with pytest.raises(errors.NoAnswerInTime):
        client.tasks.get("AQ")


def test_an_unreachable_service_is_given_up_soon_and_never_in_doubt(
    scripted: Scripted, pauses: list[float]
) -> None:
    client, script = scripted(NOT_SENT)
    with pytest.raises(errors.Unreachable):
        client.tasks.create("orders", delay=1)
    assert len(script.requests) == 4
    assert sum(pauses) < 5


@pytest.mark.parametrize("name", ["invalid-field", "unreadable", "misconfigured", "unknown-task"])
def test_a_permanent_problem_is_not_tried_again(scripted: Scripted, name: str) -> None:
    client, script = scripted(problem(name, 500 if name[0] == "m" else 422))
    with pytest.raises(errors.Problem):
        client.tasks.get("AQ")
    assert len(script.requests) == 1


def test_retry_after_is_obeyed_within_the_patience(scripted: Scripted, pauses: list[float]) -> None:
    client, _ = scripted(problem("too-many-creates", 429, retry_after=20), made())
    client.tasks.create("orders", delay=1)
    assert pauses == [20]
    client, script = scripted(problem("too-many-creates", 429, retry_after=61), made())
    with pytest.raises(errors.TooManyCreates):
        client.tasks.create("orders", delay=1)
    assert len(script.requests) == 1


def test_without_patience_there_is_one_try() -> None:
    script = Script(problem("unavailable", 503))
    client = Duewheel(patience_seconds=0, transport=script.transport)
    with pytest.raises(errors.Unavailable):
        client.tasks.get("AQ")
    assert len(script.requests) == 1


def test_pauses_grow_to_a_bound_and_have_jitter() -> None:
    def pauses(chance: float) -> list[float]:
        call = Call(method="GET", path="/", repeatable_seconds=ALWAYS, is_read=True)
        tries = Tries(call, 1000.0, 35.0, lambda: chance)
        failure = Failure(problem_from(429, {"message": "Too Many Requests"}))
        return [tries.pause_after(failure, 0) for _ in range(8)]

    assert pauses(1.0) == [0.5, 1, 2, 4, 8, 8, 8, 8]
    assert pauses(0.0) == [pause / 4 for pause in pauses(1.0)]


def test_a_batch_is_repeated_under_its_idempotency_key(scripted: Scripted) -> None:
    results = httpx.Response(200, json={"results": [{"status": 201, "task": made().json()}]})
    client, script = scripted(LOST, gateway(503), results)
    (task,) = client.tasks.create_many([NewTask(biz_type="orders", delay=1)])
    assert not isinstance(task, errors.Problem)
    assert len(set(script.headers("idempotency-key"))) == 1


def test_tasks_of_a_batch_refused_for_load_are_requested_again(
    scripted: Scripted, pauses: list[float]
) -> None:
    def result(number: int) -> dict[str, object]:
        return {"status": 201, "task": made(payload=number).json()}

    def refused(name: str, status: int, **members: object) -> dict[str, object]:
        return {"status": status, "problem": problem(name, status, **members).json()}

    client, script = scripted(
        httpx.Response(
            200,
            json={
                "results": [
                    result(0),
                    refused("unavailable", 503),
                    refused("invalid-field", 422),
                    refused("too-many-creates", 429, retry_after_seconds=7),
                ]
            },
        ),
        httpx.Response(200, json={"results": [result(1), result(3)]}),
    )
    tasks = [NewTask(biz_type="orders", delay=1, payload=number) for number in range(4)]
    results = list(client.tasks.create_many(tasks))

    assert [getattr(task, "payload", None) for task in results] == [0, 1, None, 3]
    assert pauses == [7]
    assert b'"payload":1' in script.requests[1].content
    assert b'"payload":3' in script.requests[1].content
    assert b'"payload":0' not in script.requests[1].content
    assert len(set(script.headers("idempotency-key"))) == 2


@pytest.mark.parametrize("later", [NOT_SENT, problem("unavailable", 503)])
def test_created_tasks_of_a_batch_are_returned_when_the_repeat_fails(
    scripted: Scripted, later: httpx.Response | Exception
) -> None:
    refused = {"status": 503, "problem": problem("unavailable", 503).json()}
    created = {"status": 201, "task": made().json()}
    client, _ = scripted(httpx.Response(200, json={"results": [created, refused]}), later)
    first, second = client.tasks.create_many([NewTask(biz_type="orders", delay=1)] * 2)
    assert not isinstance(first, errors.Problem)
    assert isinstance(second, errors.Unavailable)


def test_the_refusal_of_a_batch_as_too_large_is_the_result_of_its_only_task(
    scripted: Scripted,
) -> None:
    client, _ = scripted(problem("too-large", 413))
    (refused,) = client.tasks.create_many([NewTask(biz_type="orders", delay=1)])
    assert isinstance(refused, errors.TooLarge)
    with pytest.raises(errors.TooLarge):
        list(client.tasks.create_many([NewTask(biz_type="orders", delay=1)] * 2))


def test_an_answer_of_another_service_raises_unexpected_answer(scripted: Scripted) -> None:
    for answer in (
        httpx.Response(200, content=b"<html>welcome</html>"),
        httpx.Response(200, json={"hello": "there"}),
        httpx.Response(200, json=[]),
    ):
        client, _ = scripted(answer)
        with pytest.raises(errors.UnexpectedAnswer):
            client.tasks.get("AQ")


def test_a_redirect_is_not_followed(scripted: Scripted) -> None:
    client, script = scripted(httpx.Response(302, headers={"location": "http://other.example"}))
    with pytest.raises(errors.GatewayProblem):
        client.tasks.get("AQ")
    assert len(script.requests) == 1


def test_unreachable_names_the_address_and_the_cause() -> None:
    with pytest.raises(Unreachable, match=r"from http://127\.0\.0\.1:1: ConnectError"):
        Duewheel("http://127.0.0.1:1", patience_seconds=0).health()
