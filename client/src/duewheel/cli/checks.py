"""The results of the checks of `duewheel doctor`."""

from dataclasses import dataclass

from duewheel.cli.failures import REFUSED, exit_code_of, problem_line
from duewheel.errors import Problem, Unreachable


@dataclass(frozen=True, kw_only=True)
class Check:
    """`result` is ok, wrong, or attention: for a person to judge."""

    check: str
    result: str
    said: str
    exit_code: int = 0


def ok(check: str, said: str) -> Check:
    return Check(check=check, result="ok", said=said)


def attention(check: str, said: str) -> Check:
    return Check(check=check, result="attention", said=said)


def wrong(check: str, said: str, exit_code: int = REFUSED) -> Check:
    return Check(check=check, result="wrong", said=said, exit_code=exit_code)


def refused(check: str, error: Problem | Unreachable) -> Check:
    said = problem_line(error) if isinstance(error, Problem) else str(error)
    return wrong(check, said, exit_code_of(error))
