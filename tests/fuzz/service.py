"""The service in process: the api function's handler, with existing things of each kind."""

import itertools
import json
from base64 import b64decode
from typing import Any

from msgspec import Struct

from functions.api import app as api
from tests.functions.conftest import Context
from tests.fuzz.requests import Existing, Sent
from tests.support.clock import ManualClock
from tests.support.two_businesses import HOOK, MINE, OPERATOR, THEIRS, asked, die

_ARN = f"arn:aws:sts::123456789012:assumed-role/{OPERATOR}/session"
URN = "urn:duewheel:problem:"


class Answered(Struct, frozen=True):
    status: int
    headers: dict[str, str]
    text: str

    @property
    def body(self) -> Any:
        return json.loads(self.text)

    @property
    def content_type(self) -> str:
        return self.headers["content-type"]

    @property
    def problem(self) -> str | None:
        """The type of the problem; None if the request succeeded."""
        if self.status < 400:
            body = self.body
            code = body.get("code", 0) if set(body) >= {"code", "msg"} else 0
            return f"code-{code}" if code else None
        return problem_of(self.body)


def problem_of(body: Any) -> str:
    return str(body.get("type", f"code-{body.get('code')}")).removeprefix(URN)


class Service:
    """`made` creates a new thing each time, so that no request uses one that an earlier request
    ended."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self._numbers = itertools.count()
        self._request("PUT", f"/v1/businesses/{MINE}", {"callback": HOOK})

    def fill(self) -> None:
        """Creates so many things that lists have more than one page."""
        self._request("PUT", f"/v1/businesses/{THEIRS}", {})
        for _ in range(2):
            self.made(Existing("task key"))
            self._task_in("dead task")
            self._timer()
            self._api_key()

    def answer(self, sent: Sent) -> Answered:
        event = sent.event()
        event["requestContext"]["authorizer"] = {"iam": {"userArn": _ARN}}
        answer = api.handler(event, Context())
        text = answer["body"]
        if answer["isBase64Encoded"]:
            text = b64decode(text).decode()
        headers = {name.lower(): value for name, value in answer["headers"].items()}
        return Answered(answer["statusCode"], headers, text)

    def made(self, what: Existing, member: str = "") -> Any:
        match what.kind.split():
            case ["business"]:
                return MINE
            case ["task", "key"]:
                key = f"order-{next(self._numbers)}"
                self._task(key=key)
                return key
            case [*_, "task"]:
                return self._task_in(what.kind)
            case [*state, "timer"]:
                timer_id = self._timer(*state)
                return int(timer_id) if member in ("id", "timerID") else timer_id
            case [*state, "API", "key"]:
                return self._api_key(*state)
        raise AssertionError(what)

    def _task_in(self, kind: str) -> str:
        task_id = self._task()
        match kind:
            case "dead task":
                die(task_id, self._clock.now_ms())
            case "cancelled task":
                self._request("DELETE", f"/v1/tasks/{task_id}")
            case "run task":
                self._request("POST", f"/v1/tasks/{task_id}/run")
        return task_id

    def _task(self, **more: Any) -> str:
        task = {"biz_type": MINE, "delay_seconds": 600, "callback": HOOK, **more}
        return str(self._request("POST", "/v1/tasks", task)["task_id"])

    def _timer(self, state: str = "") -> str:
        timer = {"biz_type": MINE, "name": "close", "every_seconds": 3600, "callback": HOOK}
        if state == "ended":
            timer["max_runs"] = 1
        timer_id = str(self._request("POST", "/v1/timers", timer)["timer_id"])
        if state == "disabled":
            self._request("POST", f"/v1/timers/{timer_id}/disable")
        return timer_id

    def _api_key(self, state: str = "") -> str:
        grants = [{"right": "read", "businesses": MINE}]
        key_id = str(self._request("POST", "/v1/keys", {"name": "it", "grants": grants})["key_id"])
        if state == "revoked":
            self._request("DELETE", f"/v1/keys/{key_id}")
        return key_id

    def _request(self, method: str, target: str, body: Any = None) -> Any:
        answer = asked(OPERATOR, method, target, body)
        assert answer.status < 300, answer
        return answer.body
