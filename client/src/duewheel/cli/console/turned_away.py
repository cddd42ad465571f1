"""The proxy's answer when API Gateway refuses the caller: what to do in the terminal. On API
Gateway's own answer, the pages would request a key, which only browsers without this proxy need."""

import httpx

from duewheel.answers import read_answer
from duewheel.auth import BearerKey, SigV4
from duewheel.cli.console.replies import Reply, page, problem
from duewheel.errors import Forbidden, NotAuthenticated
from duewheel.retrying import Failure

AGAIN = "In the terminal, end duewheel console with Ctrl-C and start it again"


def turned_away(got: httpx.Response, auth: httpx.Auth | None, *, is_call: bool) -> Reply | None:
    """The answer to show, or None if API Gateway has not refused the caller."""
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
            reason = "The API key is not known here, or no longer good: revoked or expired."
            return f"{reason} {AGAIN} with a valid one (DUEWHEEL_KEY, or --key)."
        case SigV4():
            reason = "The AWS credentials do not hold here: they have ended, or do not allow this."
            return f"{reason} Renew them if they have ended. {AGAIN} with others (--profile)."
    reason = "The service needs credentials, and duewheel console was started without any."
    return f"{reason} {AGAIN} with --key (or DUEWHEEL_KEY) or --profile."
