"""The messages of the ingest queue held against what came of them: each task that was asked for was
made once, or stands in a dead letter of each of its copies, with the reason."""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from duewheel.rules.instants import rfc3339
from duewheel.rules.tasks.task import Task
from tests.simulation.messages import Message, Wanted

Letter = Mapping[str, Any]  # `body` and `attributes`


@dataclass
class MessageReport:
    copies: int = 0
    done: int = 0  # without a dead letter
    tasks: int = 0  # made of them
    letters: Counter[str] = field(default_factory=Counter)  # by their problem
    letters_again: int = 0  # for the same copy, as after a death at the wrong moment
    # Each of these is a broken promise:
    lost: list[str] = field(default_factory=list)
    made_twice: list[str] = field(default_factory=list)
    misjudged: list[str] = field(default_factory=list)

    @property
    def broken(self) -> list[str]:
        return [
            *(f"of a message, lost: {each}" for each in self.lost),
            *(f"of a message, made twice: {each}" for each in self.made_twice),
            *(f"of a message, misjudged: {each}" for each in self.misjudged),
        ]


def tasks_of(messages: Sequence[Message], tasks: Sequence[Task]) -> dict[int, list[Task]]:
    """What was made of them, by the number of who was asked for."""
    numbers = {wanted.number for message in messages for wanted in message.wanted}
    made: dict[int, list[Task]] = defaultdict(list)
    for task in tasks:
        number = json.loads(task.payload or "{}").get("n")
        if number in numbers:
            made[number].append(task)
    return made


def judged_messages(
    messages: Sequence[Message], made: Mapping[int, list[Task]], letters: Sequence[Letter]
) -> MessageReport:
    report = MessageReport(tasks=sum(map(len, made.values())))
    by_copy: dict[str, list[Letter]] = defaultdict(list)
    for letter in letters:
        by_copy[letter["attributes"].get("message-id", "nobody's")].append(letter)
        report.letters[letter["attributes"].get("problem", "without a reason")] += 1
    known = {copy for message in messages for copy in message.copies}
    report.misjudged += (f"a dead letter of {copy}" for copy in by_copy.keys() - known)
    report.letters_again = sum(len(several) - 1 for several in by_copy.values())
    report.copies = len(known)
    report.done = len(known - by_copy.keys())
    for message in messages:
        _judge(report, message, made, by_copy)
    return report


def _judge(
    report: MessageReport,
    message: Message,
    made: Mapping[int, list[Task]],
    by_copy: Mapping[str, list[Letter]],
) -> None:
    refusals = {copy: _refusals(message, by_copy.get(copy, ())) for copy in message.copies}
    for copy in message.copies:
        for letter in by_copy.get(copy, ()):
            report.misjudged += _wrong_in(letter, message, copy)
    for index, wanted in enumerate(message.wanted):
        tasks = made.get(wanted.number, [])
        problems = {copy: refusals[copy].get(index) for copy in message.copies}
        _judge_task(report, message, wanted, tasks, problems)
    if message.rival is not None and message.copies and message.rival.copies:
        number = sum(bool(made.get(m.wanted[0].number)) for m in (message, message.rival))
        if number != 1:
            report.misjudged.append(f"{_named(message)}: {number} bodies of one key were made")


def _judge_task(
    report: MessageReport,
    message: Message,
    wanted: Wanted,
    tasks: Sequence[Task],
    problems: Mapping[str, str | None],
) -> None:
    what = f"{_named(message)}, task {wanted.number}"
    if len(tasks) > 1:
        report.made_twice.append(f"{what}: {len(tasks)} times")
    if tasks and any(problems.values()):
        report.made_twice.append(f"{what}: and it is a dead letter")
    if not tasks:
        report.lost += (f"{what}, copy {c}" for c, problem in problems.items() if problem is None)
    if tasks and not wanted.may_be_made:
        report.misjudged.append(f"{what} is to be refused, {wanted.problem}")
    for problem in {*problems.values()} - {None, wanted.problem}:
        report.misjudged.append(f"{what} is refused, {problem}")
    dues_ms = {sent_ms + wanted.delay_ms for sent_ms in message.copies.values()}
    for task in tasks:
        if task.due_at_ms not in dues_ms:
            report.misjudged.append(f"{what} is due at {task.due_at_ms}, not at {dues_ms}")


def _refusals(message: Message, letters: Sequence[Letter]) -> dict[int, str]:
    """By the task's place in the message."""
    refusals: dict[int, str] = {}
    for letter in letters:
        told = letter["attributes"]
        if "problems" in told:
            refusals |= {each["index"]: each["problem"] for each in json.loads(told["problems"])}
        else:
            refusals |= dict.fromkeys(range(len(message.wanted)), told.get("problem", ""))
    return refusals


def _wrong_in(letter: Letter, message: Message, copy: str) -> list[str]:
    told, wrong = letter["attributes"], []
    if not told.get("detail"):
        wrong.append("it gives no reason")
    if told["sent-at"] != rfc3339(message.copies[copy]):
        wrong.append(f"it says {told['sent-at']}")
    if letter["body"] != message.body:
        tasks, left = json.loads(message.body)["tasks"], json.loads(letter["body"])
        refused = [tasks[index] for index in _refusals(message, [letter])]
        if left != {"tasks": refused}:
            wrong.append("its body is not what is left of the message")
    return [f"{_named(message)}, dead letter of {copy}: {each}" for each in wrong]


def _named(message: Message) -> str:
    copy = next(iter(message.copies), "never sent")
    return f"{message.attributes.get('idempotency-key', copy)}"
