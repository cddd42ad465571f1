"""What is said where API Gateway does not let the caller in: what to do in the terminal. By its own
answer the pages would ask for a key, which is for browsers that are not behind this proxy."""

import httpx

from duewheel.answers import read_answer
from duewheel.auth import BearerKey, SigV4
from duewheel.cli.console.replies import Reply, page, problem
from duewheel.errors import Forbidden, NotAuthenticated
from duewheel.retrying import Failure

AGAIN = "In the terminal, end duewheel console with Ctrl-C and start it again"


def turned_away(got: httpx.Response, auth: httpx.Auth | None, *, is_call: bool) -> Reply | None:
    """None, where the answer is another."""
    if got.status_code not in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
        return None
    match read_answer(got):
        case Failure(error=NotAuthenticated() | Forbidden() as error):
            detail = f"{_what_to_do(auth)} API Gateway says: {error.detail or error.title}."
            return (problem if is_call else page)(got.status_code, detail)
    return None


def _what_to_do(auth: httpx.Auth | None) -> str:
    match auth:
        case BearerKey():
            said = "The API key is not known here, or no longer good: revoked, or past its time."
            return f"{said} {AGAIN} with one that is (DUEWHEEL_KEY, or --key)."
        case SigV4():
            said = "The AWS credentials do not hold here: they have ended, or do not allow this."
            return f"{said} Renew them if they have ended. {AGAIN} with those that do (--profile)."
    said = "The service asks who is calling, and duewheel console was started as nobody."
    return f"{said} {AGAIN} with --key (or DUEWHEEL_KEY) or --profile."
