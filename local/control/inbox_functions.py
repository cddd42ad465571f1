"""Emulates Lambda functions whose names begin with `inbox-`: each stores its events in the inbox.

It fails, stops or waits by the configured answer of its inbox: a status from 300 on is an error of
the function, a header `duewheel-stop: true` is the answer stop.
"""

import json
import time
from collections.abc import Callable

from local.aws.invocations import Answer, Invocation
from local.control.inbox import Inbox

PREFIX = "inbox-"


class InboxFunctions:
    """Other functions' events go to `others`."""

    def __init__(
        self,
        inbox: Inbox,
        others: Callable[[Invocation], None],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._inbox = inbox
        self._others = others
        self._sleep = sleep

    def accept(self, invocation: Invocation) -> None:
        if invocation.function_name.startswith(PREFIX):
            self.answer(invocation)
        else:
            self._others(invocation)

    def answer(self, invocation: Invocation) -> Answer:
        """The answer of a synchronous Invoke."""
        if not invocation.function_name.startswith(PREFIX):
            return _refused(404, "ResourceNotFoundException", "Function not found")
        kind = "RequestResponse" if invocation.is_awaited else "Event"
        answer = self._inbox.take(
            invocation.function_name,
            "Invoke",
            invocation.function,
            {"x-amz-invocation-type": kind},
            invocation.payload.decode(errors="replace"),
        )
        if answer.delay_ms and invocation.is_awaited:
            self._sleep(answer.delay_ms / 1000)
        if answer.headers.get("duewheel-stop") == "true":
            return 200, _JSON, json.dumps({"duewheel-stop": True}).encode()
        if answer.status < 300:
            return 200, _JSON, answer.body.encode() or b"null"
        error = {"errorMessage": f"told to answer {answer.status}", "errorType": "ToldToFail"}
        return 200, {**_JSON, "X-Amz-Function-Error": "Unhandled"}, json.dumps(error).encode()


_JSON = {"Content-Type": "application/json"}


def _refused(status: int, code: str, message: str) -> Answer:
    return status, {**_JSON, "X-Amzn-ErrorType": code}, json.dumps({"Message": message}).encode()
