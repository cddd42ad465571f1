"""Put the answer to a request of CloudFormation at its pre-signed URL.

The URL is a secret: whoever has it can answer in the function's place. So it is in no record and in
no error. Only hosts that `stack_resource` accepts get here, and a redirect is not followed.
"""

import ssl
from collections.abc import Callable
from http.client import HTTPException, HTTPSConnection

from msgspec import Struct

from duewheel import __version__
from duewheel.clock import Clock

TIMEOUT_SECONDS = 5
PAUSES_SECONDS = (0.2, 1.0, 3.0)  # between the tries
_MAY_PASS = frozenset({408, 429})


class AnswerNotTaken(Exception):
    """No try was answered, or each by an error that may pass."""


class AnswerRefused(Exception):
    """For good: the URL has expired, or is no URL of CloudFormation."""


def connected(host: str) -> HTTPSConnection:
    context = ssl.create_default_context()
    return HTTPSConnection(host, timeout=TIMEOUT_SECONDS, context=context)


class AnswerStack(Struct, frozen=True):
    clock: Clock
    connection: Callable[[str], HTTPSConnection]

    def __call__(self, host: str, target: str, answer: bytes) -> None:
        for pause in (*PAUSES_SECONDS, None):
            problem = self._put(host, target, answer)
            if problem is None:
                return
            if pause is None:
                raise AnswerNotTaken(problem)
            self.clock.sleep(pause)

    def _put(self, host: str, target: str, answer: bytes) -> str | None:
        """None if it was taken, else what may pass."""
        # The URL is signed for an empty content type.
        headers = {"content-type": "", "user-agent": f"duewheel/{__version__}"}
        connection = self.connection(host)
        try:
            connection.request("PUT", target, answer, headers)
            status = connection.getresponse().status
        except (OSError, HTTPException) as error:
            return type(error).__name__
        finally:
            connection.close()
        if 200 <= status < 300:
            return None
        if status < 500 and status not in _MAY_PASS:
            raise AnswerRefused(f"status {status}")
        return f"status {status}"
