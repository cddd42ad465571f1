"""`duewheel doctor`: checks of the path from the caller to the service, one after the other.

It changes nothing: it checks the right to write by a request with an invalid body.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote

import click
import httpx

from duewheel.answers import no_answer, read_answer
from duewheel.auth import SigV4
from duewheel.cli.checks import Check, attention, ok, refused, wrong
from duewheel.cli.connection import Connection, as_whom
from duewheel.cli.failures import NOT_PERMITTED, Failed, exit_code_of, reported
from duewheel.cli.framework import Command, connection, output
from duewheel.cli.wheel import open_places_sentence
from duewheel.errors import Problem
from duewheel.retrying import Failure
from duewheel.values import Health, Wheel
from duewheel.version import __version__

SKEW_SECONDS_MAX = 5.0  # signatures tolerate minutes; "tomorrow 9:00" does not
TIME_LAG_SECONDS_MAX = 30.0  # a leader's successor may take twenty
SWEEP_LAG_SECONDS_MAX = 600.0
OPEN_PLACE_SECONDS_MAX = 1800.0  # the threshold of the alarm
CONCURRENCY_MIN = 1000  # new accounts have less
TIMEOUT_SECONDS = 10.0
NO_BODY_OF_ANY_CALL = b"?"
RIGHTS = {"read": ("GET", ""), "write": ("PUT", "/tasks/doctor"), "admin": ("PUT", "")}


@click.command(cls=Command)
@click.option("--business", help="Also say which rights you have on this one.")
@click.pass_context
def doctor(context: click.Context, business: str | None) -> None:
    """Check reachability, clocks, access, version, pointers; with AWS credentials, concurrency."""
    found = list(checks(connection(), business))
    output().rows(found, ("check", "result", "said"))
    context.exit(next((check.exit_code for check in found if check.exit_code), 0))


def checks(target: Connection, business: str | None) -> Iterator[Check]:
    url = target.address()
    auth = target.auth(url)
    yield ok("service", f"{url}, {as_whom(auth)}")
    with httpx.Client(auth=auth, transport=target.transport, timeout=TIMEOUT_SECONDS) as http:
        begun = datetime.now(UTC)
        try:
            answer = http.get(f"{url}/v1/health")
        except httpx.RequestError as error:
            yield refused("reachable", no_answer(error, url).error)
            return
        took = datetime.now(UTC) - begun
        yield ok("reachable", f"answers in {took.total_seconds() * 1000:.0f} ms")
        if "date" in answer.headers:
            yield clock_check(begun + took / 2, answer.headers["date"], answer.url.host)
        yield from _inside(http, url, read_answer(answer), business)
    if isinstance(auth, SigV4):
        yield _concurrency(target)


def clock_check(now: datetime, date: str, host: str) -> Check:
    """The header has whole seconds, so half a second is no error. The clock of a local stack may
    have been moved, so a difference is no error there."""
    theirs = parsedate_to_datetime(date).timestamp() + 0.5
    skew = now.timestamp() - theirs
    if abs(skew) < 1:
        return ok("clock", "agrees to the second")
    detail = f"this machine is {abs(skew):.0f} s {'ahead' if skew > 0 else 'behind'}"
    if abs(skew) > SKEW_SECONDS_MAX and host in ("127.0.0.1", "localhost", "::1"):
        return attention("clock", f"{detail}: the clock of this local stack was moved")
    return ok("clock", detail) if abs(skew) <= SKEW_SECONDS_MAX else wrong("clock", detail)


def _inside(http: httpx.Client, url: str, health: Any, business: str | None) -> Iterator[Check]:
    if isinstance(health, Failure):
        yield refused("access", health.error)
        return
    yield _version(Health.read(health))
    if business is not None:
        yield _rights(http, f"{url}/v1/businesses/{quote(business, safe='')}", business)
    wheel = _read(http, "GET", f"{url}/v1/wheel")
    if not isinstance(wheel, Failure):
        yield ok("access", "may read all businesses")
        yield from pointer_checks(Wheel.read(wheel))
    elif exit_code_of(wheel.error) == NOT_PERMITTED:
        yield attention("access", "not to all businesses, so pointers are not shown")
    else:
        yield refused("access", wheel.error)


def _version(health: Health) -> Check:
    detail = f"service {health.version}, this client {__version__}"
    return ok("version", detail) if health.version == __version__ else attention("version", detail)


def _rights(http: httpx.Client, path: str, business: str) -> Check:
    """The service checks rights before bodies."""
    held = []
    for right, (method, below) in RIGHTS.items():
        body = None if method == "GET" else NO_BODY_OF_ANY_CALL
        answer = _read(http, method, path + below, body)
        if not isinstance(answer, Failure) or _is_of_the_request(answer):
            held.append(right)
        elif exit_code_of(answer.error) != NOT_PERMITTED:
            return refused("rights", answer.error)
    if not held:
        return wrong("rights", f"none on {business}", NOT_PERMITTED)
    return ok("rights", f"{', '.join(held)} on {business}")


def _is_of_the_request(failure: Failure) -> bool:
    """Whether the request was checked: a caller without the right is refused before that."""
    return isinstance(failure.error, Problem) and failure.error.status in (400, 404, 409, 422)


def _read(http: httpx.Client, method: str, url: str, body: bytes | None = None) -> Any:
    try:
        return read_answer(http.request(method, url, content=body))
    except httpx.RequestError as error:
        return no_answer(error, url)


def pointer_checks(wheel: Wheel) -> Iterator[Check]:
    for name, pointer, lag_max in (
        ("time pointer", wheel.time_pointer, TIME_LAG_SECONDS_MAX),
        ("sweep pointer", wheel.sweep_pointer, SWEEP_LAG_SECONDS_MAX),
    ):
        detail = f"{pointer.lag_seconds:g} s behind"
        yield wrong(name, detail) if pointer.lag_seconds > lag_max else ok(name, detail)
    oldest_seconds = wheel.open_places.oldest_age_seconds or 0
    detail = open_places_sentence(wheel.open_places)
    is_old = oldest_seconds > OPEN_PLACE_SECONDS_MAX
    yield wrong("open places", detail) if is_old else ok("open places", detail)


def _concurrency(target: Connection) -> Check:
    """A caller without the right to read the account's limits is no error."""
    try:
        with reported():
            limits = target.aws("lambda").get_account_settings()["AccountLimit"]
    except Failed as failed:
        return attention("concurrency", f"not shown: {failed.message}")
    most, free = limits["ConcurrentExecutions"], limits["UnreservedConcurrentExecutions"]
    detail = f"{most:,} in the account, {free:,} of them unreserved"
    return (
        ok("concurrency", detail) if most >= CONCURRENCY_MIN else attention("concurrency", detail)
    )
