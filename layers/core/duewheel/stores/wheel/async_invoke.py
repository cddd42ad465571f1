"""Asynchronous invocation: of the notifier with queue messages, as the second link, and of the bulk
function.

Lambda keeps an accepted invocation and retries it, as the function's EventInvokeConfig says. There
is no delay: a message that is early waits in the notifier.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from duewheel.log import logger
from duewheel.rules.wheel.queue_messages import MESSAGES_PER_RUN, Message, encode_event

M = TypeVar("M", bound=Message)


class AsyncInvoke(Struct, frozen=True):
    client: Callable[[], Any]  # built at its first use: most processes never need it
    function: str

    def __call__(self, payload: str = "{}") -> bool:
        """Whether Lambda accepted it; a refusal is logged."""
        try:
            self.client().invoke(
                FunctionName=self.function, InvocationType="Event", Payload=payload.encode()
            )
        except (ClientError, BotoCoreError) as error:
            logger.error(
                "asynchronous invocation refused",
                action="not-invoked",
                function=self.function,
                error=str(error),
            )
            return False
        return True

    def send(self, messages: Iterable[M]) -> list[M]:
        """Send all messages; return those that Lambda did not accept. After the first refusal the
        rest is not tried."""
        waiting = list(messages)
        for start in range(0, len(waiting), MESSAGES_PER_RUN):
            if not self(encode_event(waiting[start : start + MESSAGES_PER_RUN])):
                return waiting[start:]
        return []
