"""Call AWS services through the SDK, on threads. Each call has one outcome.

The SDK has only blocking calls. There are as many threads as a process may have calls in flight, so
that no call waits for another's answer. A call that exceeds its timeout is abandoned at once; its
thread continues until the socket's own timeout.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError
from botocore.parsers import ResponseParserError
from botocore.response import StreamingBody
from msgspec.structs import replace

from duewheel.clock import Clock
from duewheel.rules.callbacks.aws.outcome import outcome_of_refusal
from duewheel.rules.callbacks.aws.target import AwsTarget
from duewheel.rules.callbacks.outcome import (
    ANSWER_BYTES_MAX,
    Outcome,
    Verdict,
    note_from,
    received,
)
from duewheel.rules.callbacks.payload_encoding import TOKEN_HEADER, TaskData
from duewheel.rules.callbacks.secret_headers import without_secrets
from duewheel.rules.callbacks.types import AwsCallback
from duewheel.targets.time_out import time_out

CALLS_AT_ONCE = 100


class AwsCalls:
    """Calls of one target."""

    def __init__(self, target: AwsTarget, client: Callable[[], Any], clock: Clock) -> None:
        self.calls_in_flight = 0
        self._target = target
        self._client = client  # built by the first call
        self._clock = clock
        self._threads = ThreadPoolExecutor(CALLS_AT_ONCE, thread_name_prefix="target")

    async def __call__(
        self,
        callback: AwsCallback,
        task: TaskData,
        timeout_seconds: float,
        *,
        wants_answer: bool = False,
    ) -> Outcome:
        request = self._target.request(callback, task)
        token = task.completion_token
        secrets = () if token is None else ((TOKEN_HEADER, token),)
        work = partial(self._outcome, request, secrets, wants_answer=wants_answer)
        loop = asyncio.get_running_loop()
        self.calls_in_flight += 1
        try:
            async with time_out(timeout_seconds):
                return await loop.run_in_executor(self._threads, work)
        except TimeoutError:
            return Outcome(Verdict.RETRY, f"no whole reply within {timeout_seconds:g} s")
        finally:
            self.calls_in_flight -= 1

    def _outcome(
        self,
        request: dict[str, Any],
        secrets: tuple[tuple[str, str], ...],
        *,
        wants_answer: bool,
    ) -> Outcome:
        answer = self._answer(request)
        if isinstance(answer, Outcome):
            return answer
        payload = answer.get("Payload")
        if not isinstance(payload, bytes):
            return self._target.outcome(answer, self._clock.now_ms())
        is_whole = len(payload) < ANSWER_BYTES_MAX
        payload = without_secrets(payload, secrets)
        outcome = self._target.outcome({**answer, "Payload": payload}, self._clock.now_ms())
        if not wants_answer:
            return outcome
        return replace(outcome, answer=received({}, payload, is_whole=is_whole))

    def _answer(self, request: dict[str, Any]) -> dict[str, Any] | Outcome:
        """What AWS answers, or the outcome of a call without an answer."""
        try:
            return _read(getattr(self._client(), self._target.operation)(**request))
        except ClientError as error:
            return self._refused(error.response)
        except ParamValidationError as error:
            return Outcome(Verdict.STOP, note_from(f"cannot be sent: {error}"))
        except (BotoCoreError, ResponseParserError) as error:
            return Outcome(Verdict.RETRY, note_from(f"{type(error).__name__}: {error}"))

    def _refused(self, response: Any) -> Outcome:
        error, about = response.get("Error", {}), response.get("ResponseMetadata", {})
        code, message = error.get("Code", ""), error.get("Message", "")
        status_code = about.get("HTTPStatusCode")
        if code in self._target.accepted_codes:
            return Outcome(
                Verdict.DELIVERED, note_from(f"accepted before: {code}"), status_code=status_code
            )
        if code in self._target.stop_codes:
            return Outcome(Verdict.STOP, note_from(f"{code}: {message}"), status_code=status_code)
        retry_after = about.get("HTTPHeaders", {}).get("retry-after", "")
        return outcome_of_refusal(code, message, status_code, retry_after, self._clock.now_ms())


def _read(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer, with the beginning of a streamed body."""
    whole = dict(answer)
    for name, value in answer.items():
        if isinstance(value, StreamingBody):
            with value:
                whole[name] = value.read(ANSWER_BYTES_MAX)
    return whole
