"""What the verdict says of a message, by what was made of it and by its dead letters."""

import json
from typing import Any

from msgspec.structs import replace

from duewheel.rules.callbacks.types import HttpCallback
from duewheel.rules.instants import rfc3339
from duewheel.rules.tasks.task import Task
from duewheel.rules.wheel.addresses import address_at
from tests.simulation.message_verdict import Letter, MessageReport, judged_messages, tasks_of
from tests.simulation.messages import Message, Wanted
from tests.support.clock import NOON_MS

GOOD = Wanted(1, 5_000)
BAD = Wanted(2, 5_000, "invalid-field", may_be_made=False)
EITHER = Wanted(3, 5_000, "key-taken")
RIVALRY = "idempotency-key-reused"


def task(number: int, due_ms: int = NOON_MS + 5_000) -> Task:
    home = address_at(due_ms, number.to_bytes(8, "big"))
    callback = HttpCallback("https://receiver.example/ok")
    return replace(Task.at(home, "orders", due_ms, 1, callback), payload=f'{{"n": {number}}}')


def batch(*wanted: Wanted, copies: int = 1) -> Message:
    tasks = [{"payload": {"n": one.number}} for one in wanted]
    sent = {f"copy-{number}": NOON_MS for number in range(copies)}
    return Message(json.dumps({"tasks": tasks}), wanted, copies=sent)


def letter(
    message: Message, problems: dict[int, str], copy: str = "copy-0", **more: str | None
) -> Letter:
    """A dead letter of what the batch was refused, as it should be. None: left out."""
    tasks = json.loads(message.body)["tasks"]
    listed = [{"index": index, "problem": problem} for index, problem in problems.items()]
    told = {
        "message-id": copy,
        "sent-at": rfc3339(NOON_MS),
        "problem": next(iter(problems.values())),
        "detail": "It is wrong.",
        "problems": json.dumps(listed),
        **{name.replace("_", "-"): value for name, value in more.items()},
    }
    left = {"tasks": [tasks[index] for index in problems]}
    return {
        "body": message.body if len(problems) == len(tasks) else json.dumps(left),
        "attributes": {name: value for name, value in told.items() if value is not None},
    }


def verdict(message: Message, tasks: list[Task], *letters: Letter, **of: Any) -> MessageReport:
    messages = [message, *of.get("others", ())]
    return judged_messages(messages, tasks_of(messages, tasks), letters)


def test_a_message_whose_tasks_are_there_or_buried_with_their_reason_is_as_it_should_be() -> None:
    message = batch(GOOD, BAD)
    report = verdict(message, [task(1), task(99)], letter(message, {1: "invalid-field"}))
    assert report.broken == []
    assert (report.copies, report.done, report.tasks) == (1, 0, 1)
    assert report.letters == {"invalid-field": 1}


def test_a_task_that_is_neither_there_nor_buried_is_lost() -> None:
    assert verdict(batch(GOOD), []).lost == ["copy-0, task 1, copy copy-0"]
    assert verdict(batch(BAD), []).lost


def test_each_copy_of_what_is_refused_has_to_have_its_dead_letter() -> None:
    message = batch(BAD, copies=2)
    one, other = (letter(message, {0: "invalid-field"}, copy) for copy in message.copies)
    assert verdict(message, [], one).lost == ["copy-0, task 2, copy copy-1"]
    assert verdict(message, [], one, other).broken == []


def test_what_sqs_never_had_is_owed_nothing() -> None:
    assert verdict(batch(GOOD, BAD, copies=0), []).broken == []


def test_copies_under_one_key_make_a_task_once() -> None:
    message = batch(GOOD, copies=2)
    assert verdict(message, [task(1)]).broken == []
    twice = [task(1), task(1, NOON_MS + 5_001)]
    assert verdict(message, twice).made_twice == ["copy-0, task 1: 2 times"]


def test_a_task_that_is_there_and_buried_may_be_made_twice() -> None:
    message = batch(EITHER)
    buried = letter(message, {0: "key-taken"})
    assert verdict(message, [task(3)]).broken == []
    assert verdict(message, [], buried).broken == []
    assert verdict(message, [task(3)], buried).made_twice


def test_a_second_dead_letter_of_a_copy_is_counted_and_allowed() -> None:
    message = batch(BAD)
    report = verdict(message, [], *[letter(message, {0: "invalid-field"})] * 2)
    assert (report.broken, report.letters_again) == ([], 1)


def test_what_is_refused_though_it_is_fine_or_made_though_it_is_not_is_misjudged() -> None:
    message = batch(GOOD)
    assert verdict(message, [], letter(message, {0: "internal"})).misjudged
    assert verdict(batch(BAD), [task(2)]).misjudged


def test_a_task_is_due_so_long_after_one_of_its_copies_was_sent() -> None:
    message = batch(GOOD)
    assert verdict(message, [task(1, NOON_MS + 5_001)]).misjudged
    message.copies["copy-1"] = NOON_MS + 1
    assert verdict(message, [task(1, NOON_MS + 5_001)]).broken == []


def test_a_dead_letter_that_does_not_say_why_or_of_what_is_misjudged() -> None:
    message = batch(GOOD, BAD)
    for wrong in (
        letter(message, {1: "invalid-field"}, detail=None),
        letter(message, {1: "invalid-field"}, sent_at=rfc3339(NOON_MS + 1)),
        {**letter(message, {1: "invalid-field"}), "body": '{"tasks": []}'},
    ):
        assert len(verdict(message, [task(1)], wrong).misjudged) == 1
    nobodys = letter(message, {1: "invalid-field"}, message_id=None, problem=None)
    assert verdict(message, [task(1)], nobodys).misjudged == ["a dead letter of nobody's"]
    assert verdict(message, [task(1)], nobodys).letters == {"without a reason": 1}


def test_of_two_bodies_under_one_key_one_is_carried_out_and_the_other_refused() -> None:
    def rival(number: int) -> Message:
        wanted = Wanted(number, 5_000, RIVALRY)
        body = json.dumps({"payload": {"n": number}})
        return Message(body, (wanted,), copies={f"copy-{number}": NOON_MS})

    def refused(message: Message) -> Letter:
        (copy,) = message.copies
        told = {"message-id": copy, "sent-at": rfc3339(NOON_MS), "problem": RIVALRY, "detail": "."}
        return {"body": message.body, "attributes": told}

    one, other = rival(1), rival(2)
    one.rival, other.rival = other, one
    assert verdict(one, [task(1)], refused(other), others=[other]).broken == []
    assert verdict(one, [task(1), task(2)], others=[other]).misjudged
    assert verdict(one, [], refused(one), refused(other), others=[other]).misjudged
