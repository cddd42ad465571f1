"""CloudFormation as a function of a custom resource meets it: it sends requests, takes the answers
at a pre-signed URL, and deletes what an update replaced and what it rolls back."""

import json
from collections.abc import Callable
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

from msgspec import Struct, field

HOST = "cloudformation-custom-resource-response-useast1.s3.us-east-1.amazonaws.com"
SIGNATURE = "X-Amz-Signature=0f5a2c9e1111"
_GUIDES = Path(__file__).parents[2] / "docs" / "guides"


class Put(Struct, frozen=True):
    host: str
    target: str
    body: Any
    headers: dict[str, str]


class Storage:
    """Takes what is put. `answers` are the next ones: a status, or an error of the network."""

    def __init__(self) -> None:
        self.taken: list[Put] = []
        self.tries = 0
        self.answers: list[int | Exception] = []

    def connection(self, host: str, timeout: float) -> HTTPSConnection:
        assert timeout <= 5
        return cast("HTTPSConnection", _Connection(self, host))


class _Connection:
    def __init__(self, storage: Storage, host: str) -> None:
        self._storage = storage
        self._host = host
        self.status = 200

    def request(self, method: str, target: str, body: bytes, headers: dict[str, str]) -> None:
        assert method == "PUT"
        assert len(body) <= 4_096
        self._storage.tries += 1
        answer = self._storage.answers.pop(0) if self._storage.answers else 200
        if isinstance(answer, Exception):
            raise answer
        self.status = answer
        if answer == 200:
            put = Put(self._host, target, json.loads(body), headers)
            self._storage.taken.append(put)

    def getresponse(self) -> "_Connection":
        return self

    def close(self) -> None:
        pass


Send = Callable[[dict[str, Any]], Any]  # to the function; returns the answer


class StackOfATeam(Struct, kw_only=True):
    """A stack whose template may have one resource of this kind by each logical id."""

    send: Send
    name: str = "orders-app"
    account: str = "123456789012"
    unique: str = field(default_factory=lambda: str(uuid4()))
    physical_ids: dict[str, str] = field(default_factory=dict)
    properties: dict[str, Any] = field(default_factory=dict)

    @property
    def stack_id(self) -> str:
        return f"arn:aws:cloudformation:us-east-1:{self.account}:stack/{self.name}/{self.unique}"

    def event(self, kind: str, resource: str, properties: Any, **more: Any) -> dict[str, Any]:
        request_id = str(uuid4())
        path = f"{self.stack_id}%7C{resource}%7C{request_id}".replace(":", "%3A")
        return {
            "RequestType": kind,
            "ServiceToken": "arn:aws:lambda:us-east-1:123456789012:function:timers:live",
            "ResponseURL": f"https://{HOST}/{path}?X-Amz-Expires=7200&{SIGNATURE}",
            "StackId": self.stack_id,
            "RequestId": request_id,
            "LogicalResourceId": resource,
            "ResourceType": "Custom::DuewheelTimer",
            "ResourceProperties": {"ServiceToken": "arn", **as_properties(properties)},
            **more,
        }

    def create(self, properties: Any, resource: str = "Nightly") -> Any:
        """A failed create is rolled back: its resource is deleted."""
        answer = self.send(self.event("Create", resource, properties))
        self.physical_ids[resource] = answer["PhysicalResourceId"]
        self.properties[resource] = properties
        if answer["Status"] == "FAILED":
            assert self.delete(resource)["Status"] == "SUCCESS"
        return answer

    def update(self, properties: Any, resource: str = "Nightly") -> Any:
        before, old = self.physical_ids[resource], self.properties[resource]
        more = {"PhysicalResourceId": before, "OldResourceProperties": as_properties(old)}
        answer = self.send(self.event("Update", resource, properties, **more))
        if answer["Status"] == "FAILED":
            assert answer["PhysicalResourceId"] == before
            return answer
        self.properties[resource] = properties
        self.physical_ids[resource] = answer["PhysicalResourceId"]
        if answer["PhysicalResourceId"] != before:
            event = self.event("Delete", resource, old, PhysicalResourceId=before)
            assert self.send(event)["Status"] == "SUCCESS"
        return answer

    def delete_event(self, resource: str = "Nightly") -> dict[str, Any]:
        physical_id, properties = self.physical_ids[resource], self.properties[resource]
        return self.event("Delete", resource, properties, PhysicalResourceId=physical_id)

    def delete(self, resource: str = "Nightly") -> Any:
        return self.send(self.delete_event(resource))


def as_properties(timer: Any) -> dict[str, Any]:
    """The timer without its business and name is the definition."""
    if "definition" in timer:
        return dict(timer)
    names = {name: timer[name] for name in ("biz_type", "name") if name in timer}
    definition = {name: value for name, value in timer.items() if name not in names}
    return {**names, "definition": json.dumps(definition)}


def guide() -> str:
    return (_GUIDES / "timers-as-code.md").read_text(encoding="utf-8")


def template_in_guide() -> str:
    """Of an application with a timer."""
    return guide().partition("cat > reports-app.yaml <<'END'\n")[2].partition("\nEND\n")[0] + "\n"
