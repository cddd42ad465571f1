"""The `/_local` routes: inbox, ingest queue, movable clock, faults and metrics. Never part of a
deployed stack."""

import json
import time
from collections.abc import Callable
from math import isfinite
from typing import Any, Protocol

from duewheel.rules.instants import rfc3339
from local.aws.http_api import Reply, Request
from local.aws.metrics import Metrics
from local.chaos.faults import Faults
from local.control.clock import real_ms
from local.control.inbox import Inbox, answer_from
from local.control.ingest_messages import IngestMessages
from local.control.problems import BadInput, json_reply, problem_reply

PREFIX = "/_local/"
LATEST_MS = 253_402_300_799_000  # the last second of the year 9999


class Wheelwright(Protocol):
    """Moves the clock, and runs what falls due."""

    def now_ms(self) -> int: ...

    @property
    def is_frozen(self) -> bool: ...

    def freeze(self) -> None: ...

    def unfreeze(self) -> None: ...

    def reset(self) -> bool:
        """Back to real time; whether the data was kept."""

    def advance(self, milliseconds: int) -> int:
        """How many tasks became delivered."""


class Mailbox(Protocol):
    """Messages of queues, topics and buses, which wait until they are read."""

    def __contains__(self, name: str) -> bool: ...

    def collect(self, name: str) -> None: ...


class LocalRoutes:
    def __init__(
        self,
        inbox: Inbox,
        clock: Wheelwright,
        faults: Faults,
        sleep: Callable[[float], None] = time.sleep,
        mailbox: Mailbox | None = None,
        ingest: IngestMessages | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self._ingest = ingest
        self._metrics = metrics or Metrics()
        self._mailbox = mailbox
        self._faults = faults
        self._inbox = inbox
        self._clock = clock
        self._sleep = sleep

    def answer(self, request: Request) -> Reply:
        try:
            return self._answer(request)
        except BadInput as error:
            return problem_reply(error)

    def _answer(self, request: Request) -> Reply:
        match request.path.removeprefix(PREFIX).split("/"):
            case ["inbox", name] if name:
                return self._receive(name, request)
            case ["received", name] if name:
                return self._received(name, request)
            case ["clock"]:
                return self._answer_clock(request)
            case ["ingest", *rest] if self._ingest is not None and rest in ([], ["dead"]):
                return _answer_ingest(self._ingest, request, is_dead=bool(rest))
            case ["faults"]:
                return self._answer_faults(request)
            case ["metrics", *name] if len(name) < 2:
                return self._answer_metrics(request, *name)
        raise BadInput(f"There is no {request.path} here.", status=404)

    def _receive(self, name: str, request: Request) -> Reply:
        answer = self._inbox.receive(name, request)
        if answer.delay_ms:
            self._sleep(answer.delay_ms / 1000)
        return Reply(answer.status, answer.body.encode(), tuple(answer.headers.items()))

    def _received(self, name: str, request: Request) -> Reply:
        if self._mailbox is not None:
            self._mailbox.collect(name)
        match request.method:
            case "GET":
                return json_reply(200, {"requests": self._inbox.received(name)})
            case "PUT" if self._mailbox is not None and name in self._mailbox:
                raise BadInput(f"{name} accepts all messages; its answer cannot be set.")
            case "PUT":
                answer = answer_from(_json_object(request))
                self._inbox.answer_with(name, answer)
                return json_reply(200, answer.as_json())
            case "DELETE":
                self._inbox.forget(name)
                return Reply(204)
        raise BadInput("This call takes GET, PUT and DELETE.", status=405)

    def _answer_faults(self, request: Request) -> Reply:
        if request.method != "GET":
            raise BadInput("This call takes GET.", status=405)
        injected = {name: number for name, number in self._faults.injected.items() if number}
        shown = {"rate": self._faults.rate, "seed": self._faults.seed, "injected": injected}
        return json_reply(200, shown)

    def _answer_metrics(self, request: Request, name: str | None = None) -> Reply:
        if request.method != "GET":
            raise BadInput("This call takes GET.", status=405)
        if name is None:
            return json_reply(200, self._metrics.overview())
        return json_reply(200, self._metrics.detail(name))

    def _answer_clock(self, request: Request) -> Reply:
        match request.method:
            case "GET":
                return json_reply(200, self._clock_state())
            case "POST":
                return self._move_clock(_json_object(request))
        raise BadInput("This call takes GET and POST.", status=405)

    def _move_clock(self, body: dict[str, Any]) -> Reply:
        match body:
            case {"freeze": bool(is_to_freeze)} if len(body) == 1:
                if is_to_freeze:
                    self._clock.freeze()
                else:
                    self._clock.unfreeze()
                return json_reply(200, self._clock_state())
            case {"reset": True} if len(body) == 1:
                is_kept = self._clock.reset()
                return json_reply(200, {"now": rfc3339(real_ms()), "kept": is_kept})
            case {"advance_seconds": seconds} if len(body) == 1:
                delivered = self._clock.advance(self._advance_ms(seconds))
                return json_reply(
                    200, {"now": rfc3339(self._clock.now_ms()), "delivered": delivered}
                )
        raise BadInput(
            'This call takes {"freeze": true}, {"freeze": false}, {"advance_seconds": n} '
            'or {"reset": true}.'
        )

    def _advance_ms(self, seconds: object) -> int:
        is_number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
        latest_seconds = (LATEST_MS - self._clock.now_ms()) / 1000
        if not is_number or not isfinite(seconds) or not 0 <= seconds <= latest_seconds:  # type: ignore[operator,arg-type]
            raise BadInput(
                f"must be a number of seconds from 0 to {int(latest_seconds)}", "advance_seconds"
            )
        return round(seconds * 1000)  # type: ignore[operator]

    def _clock_state(self) -> dict[str, Any]:
        return {"now": rfc3339(self._clock.now_ms()), "frozen": self._clock.is_frozen}


def _answer_ingest(ingest: IngestMessages, request: Request, *, is_dead: bool) -> Reply:
    method = "GET" if is_dead else "POST"
    if request.method != method:
        raise BadInput(f"This call takes {method}.", status=405)
    if is_dead:
        return json_reply(200, {"messages": ingest.dead_letters()})
    return json_reply(202, {"message_id": ingest.send(request)})


def _json_object(request: Request) -> dict[str, Any]:
    try:
        body = json.loads(request.body)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"The body is no JSON: {error}.", status=400) from error
    if not isinstance(body, dict):
        raise BadInput("The body must be a JSON object.", status=400)
    return body
