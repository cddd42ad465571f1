"""All targets by the type of a callback. Each call has one outcome."""

from collections.abc import Callable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from duewheel.rules.callbacks.aws.registry import target_of
from duewheel.rules.callbacks.completion import completes_within
from duewheel.rules.callbacks.outcome import Outcome, Verdict, received
from duewheel.rules.callbacks.payload_encoding import (
    SentTask,
    TaskData,
    callback_headers,
    secrets_sent,
    text_of,
    unsuitable,
)
from duewheel.rules.callbacks.signature import has_second_reading
from duewheel.rules.callbacks.types import AwsCallback, Callback, HttpCallback
from duewheel.rules.tasks.task import Task
from duewheel.targets.aws.calls import AwsCalls
from duewheel.targets.http.target import HttpTarget

NOT_TO_BE_SIGNED = (
    "cannot be signed: a number in the body, before a dot, reads as a later timestamp"
)


class Targets(Struct, frozen=True):
    """`secret`: seals the tokens by which receivers report the end of their work."""

    http: HttpTarget
    aws: Mapping[str, AwsCalls]  # by type
    secret: Callable[[], bytes]

    @property
    def calls_in_flight(self) -> int:
        return self.http.calls_in_flight + sum(one.calls_in_flight for one in self.aws.values())

    async def call(
        self,
        callback: Callback,
        task: Task,
        now_ms: int,
        timeout_seconds: float,
        secrets: tuple[bytes, ...] = (),
        *,
        wants_answer: bool = False,
    ) -> Outcome:
        """`callback`: the effective one. HTTP calls are signed with the secrets; AWS services
        authenticate the sender themselves. `wants_answer`: the outcome has the answer, of those
        that have one: HTTP and functions."""
        if (reason := unsuitable(callback, task.payload)) is not None:
            return Outcome(Verdict.STOP, f"cannot be sent: the payload {reason}")
        if isinstance(callback, AwsCallback):
            calls = self.aws[target_of(callback).name]
            sent = self._sent(callback, task)
            outcome = await calls(callback, sent, timeout_seconds, wants_answer=wants_answer)
            return _until_reported(callback, outcome)
        body = _body(callback, task)
        if secrets and body and has_second_reading(body, now_ms // 1000):
            return Outcome(Verdict.STOP, NOT_TO_BE_SIGNED)
        headers = callback_headers(self._sent(callback, task), now_ms, secrets, body)
        if not wants_answer:
            return await self.http.call(callback, headers, body, timeout_seconds)
        reply = await self.http.reply(callback, headers, body, timeout_seconds)
        if isinstance(reply, Outcome):
            return reply
        sent_headers = secrets_sent(callback, headers)
        answer = received(
            reply.headers, reply.body_start, is_whole=reply.is_whole, sent=sent_headers
        )
        return replace(self.http.outcome_of(reply), answer=answer)

    def _sent(self, callback: Callback, task: Task) -> TaskData:
        """With a token only where its receiver may report an end."""
        if takes_token(callback):
            return SentTask.of(task, self.secret())
        return task


def takes_token(callback: Callback) -> bool:
    """The answer of an HTTP receiver, and that of a function that is awaited, may say so."""
    if isinstance(callback, HttpCallback) or completes_within(callback) is not None:
        return True
    return getattr(callback, "is_async", None) is False


def _until_reported(callback: AwsCallback, outcome: Outcome) -> Outcome:
    """Of a target that reports the end of its work, unless the answer says how long it takes."""
    within = completes_within(callback)
    if outcome.verdict is not Verdict.DELIVERED or outcome.complete_within_seconds is not None:
        return outcome
    return outcome if within is None else replace(outcome, complete_within_seconds=within)


def _body(callback: HttpCallback, task: Task) -> bytes | None:
    if task.payload is None or callback.method == "GET":
        return None
    return text_of(task.payload, is_raw=callback.is_raw).encode()
