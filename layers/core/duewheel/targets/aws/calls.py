"""Calls of one AWS service through the SDK, on threads, each with one outcome.

Threads since the SDK knows nothing else, and as many as a process may have calls in flight,
so that no call waits for another's answer. A call that outlasts its timeout is given up at
once; its thread goes on until the socket's own timeout.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError
from botocore.parsers import ResponseParserError

from duewheel.clock import Clock
from duewheel.rules.callbacks.aws_outcome import outcome_of_refusal
from duewheel.rules.callbacks.http_outcome import note_from
from duewheel.rules.callbacks.outcome import Outcome, Verdict

CALLS_AT_ONCE = 100

Call = Callable[[Any], Outcome]


class AwsCalls:
    def __init__(self, client: Callable[[], Any], clock: Clock) -> None:
        self.calls_in_flight = 0
        self._client = client  # built by the first call
        self._clock = clock
        self._threads = ThreadPoolExecutor(CALLS_AT_ONCE, thread_name_prefix="target")

    async def __call__(self, call: Call, timeout_seconds: float) -> Outcome:
        """What `call`, handed the client, made of the answer; or what became of it otherwise."""
        loop = asyncio.get_running_loop()
        self.calls_in_flight += 1
        try:
            async with asyncio.timeout(timeout_seconds):
                return await loop.run_in_executor(self._threads, self._outcome, call)
        except TimeoutError:
            return Outcome(Verdict.RETRY, f"no whole reply within {timeout_seconds:g} s")
        finally:
            self.calls_in_flight -= 1

    def _outcome(self, call: Call) -> Outcome:
        try:
            return call(self._client())
        except ClientError as error:
            return self._refused(error.response)
        except ParamValidationError as error:
            return Outcome(Verdict.STOP, note_from(f"cannot be sent: {error}"))
        except (BotoCoreError, ResponseParserError) as error:
            return Outcome(Verdict.RETRY, note_from(f"{type(error).__name__}: {error}"))

    def _refused(self, response: Any) -> Outcome:
        error, about = response.get("Error", {}), response.get("ResponseMetadata", {})
        return outcome_of_refusal(
            error.get("Code", ""),
            error.get("Message", ""),
            about.get("HTTPStatusCode"),
            about.get("HTTPHeaders", {}).get("retry-after", ""),
            self._clock.now_ms(),
        )
