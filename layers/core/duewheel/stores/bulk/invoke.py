"""The asynchronous invocation of the function that carries out bulk operations.

A refused one is logged: the sweeper invokes the function within a minute.
"""

from collections.abc import Callable
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from duewheel.log import logger


class InvokeBulk(Struct, frozen=True):
    client: Callable[[], Any]  # built at its first use
    function: str

    def __call__(self) -> None:
        try:
            self.client().invoke(FunctionName=self.function, InvocationType="Event", Payload=b"{}")
        except (ClientError, BotoCoreError) as error:
            logger.warning("bulk function not invoked", action="bulk-not-invoked", error=str(error))
