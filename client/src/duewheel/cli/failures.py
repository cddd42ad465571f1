"""Each failure's message on stderr, and its exit code."""

from collections.abc import Iterator
from contextlib import contextmanager

import click
import httpx

from duewheel.errors import (
    DuewheelError,
    Forbidden,
    NotAuthenticated,
    NotPermitted,
    OutcomeUnknown,
    Problem,
    Unreachable,
)

REFUSED = 1
USAGE = 2
NOT_REACHABLE = 3
NOT_PERMITTED = 4
WOULD_CHANGE = 5


class Failed(click.ClickException):
    """Ends the command with one line."""

    def __init__(self, message: str, exit_code: int = REFUSED) -> None:
        super().__init__(visible(message))
        self.ends_with = exit_code

    @property
    def exit_code(self) -> int:  # type: ignore[override]
        return self.ends_with


@contextmanager
def reported() -> Iterator[None]:
    """Turn exceptions of the client, the AWS SDK and files into a line and an exit code."""
    try:
        yield
    except DuewheelError as error:
        raise Failed(_message(error), exit_code_of(error)) from error
    except (ValueError, httpx.InvalidURL) as error:
        raise Failed(str(error), USAGE) from error
    except BrokenPipeError:
        raise  # the reader of stdout has closed it: click ends without a message
    except OSError as error:
        raise Failed(str(error)) from error
    except Exception as error:
        if not type(error).__module__.startswith("botocore."):
            raise
        raise Failed(f"AWS: {error}", _aws_exit_code(error)) from error


def exit_code_of(error: DuewheelError) -> int:
    match error:
        case Unreachable():
            return NOT_REACHABLE
        case NotPermitted() | NotAuthenticated() | Forbidden():
            return NOT_PERMITTED
    return REFUSED


def problem_line(problem: Problem) -> str:
    return f"{problem.title}: {problem.detail}" if problem.detail else problem.title


def visible(text: str) -> str:
    """Show control characters as escapes, so that the terminal does not obey them."""
    return "".join(
        each if each.isprintable() or each == "\n" else ascii(each)[1:-1] for each in text
    )


def _message(error: DuewheelError) -> str:
    match error:
        case Problem():
            return problem_line(error)
        case Unreachable():
            return f"The service cannot be reached. {error}"
        case OutcomeUnknown():
            return f"The answer was lost. {error}"
    return str(error)


def _aws_exit_code(error: Exception) -> int:
    name = type(error).__name__
    if name in ("EndpointConnectionError", "ConnectTimeoutError", "ConnectionError"):
        return NOT_REACHABLE
    response = getattr(error, "response", {})
    is_denied = "AccessDenied" in response.get("Error", {}).get("Code", "")
    return NOT_PERMITTED if is_denied or "Credentials" in name or "Token" in name else REFUSED
