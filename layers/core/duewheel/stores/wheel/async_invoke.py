"""The second link: queue messages sent to the notifier by asynchronous invocation.

Lambda keeps an accepted invocation and retries it, as the EventInvokeConfig of the notifier says.
There is no delay: a message that is early waits in the notifier.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from duewheel.log import logger
from duewheel.rules.wheel.queue_messages import MESSAGES_PER_RUN, Message, encode_event

M = TypeVar("M", bound=Message)


class InvokeFallback(Struct, frozen=True):
    client: Callable[[], Any]  # built at its first use: most processes never need it
    function: str

    def send(self, messages: Iterable[M]) -> list[M]:
        """Send all messages; return those that Lambda did not accept. After the first refusal the
        rest is not tried."""
        waiting = list(messages)
        for start in range(0, len(waiting), MESSAGES_PER_RUN):
            if not self._invoke(waiting[start : start + MESSAGES_PER_RUN]):
                return waiting[start:]
        return []

    def _invoke(self, messages: list[M]) -> bool:
        try:
            self.client().invoke(
                FunctionName=self.function,
                InvocationType="Event",
                Payload=encode_event(messages).encode(),
            )
        except (ClientError, BotoCoreError) as error:
            logger.error(
                "asynchronous invocation refused", action="second-link-refused", error=str(error)
            )
            return False
        return True
