"""Requests that schemathesis makes from the API document, in the form in which they reach the api
function.

An invented id exists nowhere, so most ids are replaced by one of an existing thing: the strategy
draws its kind (`Existing`), and the service creates it when the request is sent.
"""

import json
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

import requests
import schemathesis
from hypothesis import reject
from hypothesis import strategies as st
from msgspec import Struct
from schemathesis import Case, GenerationMode
from schemathesis.schemas import APIOperation

from tests.functions.conftest import event_from
from tests.support.api_document import BOTH

Name = tuple[str, str]  # method and path template

_EXACT = 2**53  # a float has every smaller integer
_NOT_SENT = {"authorization", "user-agent", "content-length", "accept-encoding", "connection"}


class Existing(Struct, frozen=True):
    """A placeholder for the id of an existing thing."""

    kind: str


# By the name of a parameter or of a member of the body: its possible values, besides invented ones.
EXISTING: Mapping[str, tuple[Any, ...]] = {
    "biz_type": (Existing("business"),),
    "app": (Existing("business"),),
    "task_id": tuple(map(Existing, ("pending task", "dead task", "cancelled task", "run task"))),
    "timer_id": tuple(map(Existing, ("timer", "disabled timer", "ended timer"))),
    "id": (Existing("timer"), Existing("disabled timer")),
    "timerID": (Existing("timer"),),
    "key_id": tuple(map(Existing, ("API key", "revoked API key"))),
    "key": (Existing("task key"),),
    "key_prefix": ("order",),
    "limit": (1,),
    "If-Match": ('"1"', "*"),
}


class Sent(Struct, frozen=True):
    name: Name
    arguments: dict[str, str]
    query: tuple[tuple[str, str], ...]
    headers: dict[str, str]  # names in lower case
    body: bytes

    @property
    def path(self) -> str:
        return self.name[1].format(**self.arguments)

    @property
    def query_string(self) -> str:
        """As forms and most libraries write it: a blank is a `+`."""
        return urlencode(self.query)

    def event(self) -> dict[str, Any]:
        """As API Gateway passes it on: the path is decoded, the query is not."""
        event = event_from("http-api-create-task.json")
        event["rawPath"] = event["requestContext"]["http"]["path"] = self.path
        event["rawQueryString"] = self.query_string
        event["requestContext"]["http"]["method"] = self.name[0]
        event["headers"] = {"host": event["headers"]["host"], **self.headers}
        try:
            event["body"] = self.body.decode()
        except UnicodeDecodeError:
            event["body"], event["isBase64Encoded"] = b64encode(self.body).decode(), True
        return event

    def __str__(self) -> str:
        query = f"?{self.query_string}" if self.query else ""
        shown = {k: v for k, v in self.headers.items() if k != "content-type"}
        headers = f" {json.dumps(shown)}" if shown else ""
        body = f" {self.body.decode(errors='backslashreplace')}" if self.body else ""
        return f"{self.name[0]} {self.path}{query}{headers}{body}"


@cache
def operations() -> dict[Name, APIOperation[Any, Any, Any, Any]]:
    schema = schemathesis.openapi.from_dict(BOTH)
    found = (result.ok() for result in schema.get_all_operations())
    return {(one.method.upper(), one.path): one for one in found}


@st.composite
def cases(draw: st.DrawFn, name: Name, mode: GenerationMode) -> Case:
    case: Case = draw(operations()[name].as_strategy(generation_mode=mode))
    path = case.path_parameters or {}
    where = [path, case.query or {}, case.headers or {}]
    if isinstance(case.body, dict):
        where.append(case.body)
    for members in where:
        for member in sorted(set(members) & set(EXISTING), key=str):
            if members is path or mode is GenerationMode.POSITIVE:
                choice = draw(st.sampled_from([None, *2 * EXISTING[member]]))
                members[member] = members[member] if choice is None else choice
    if draw(st.booleans()):
        case.body = _with_fractions(case.body)
    return case


def _with_fractions(value: Any) -> Any:
    """Whole numbers as `60.0`, which is an integer by JSON Schema."""
    match value:
        case dict():
            return {name: _with_fractions(one) for name, one in value.items()}
        case list():
            return [_with_fractions(one) for one in value]
        case int() if not isinstance(value, bool) and abs(value) < _EXACT:
            return float(value)
    return value


def sent(case: Case, name: Name, made: Any) -> Sent:
    """`made`: creates the thing of an `Existing`, and returns its id."""
    arguments = {}
    for parameter, value in (case.path_parameters or {}).items():
        text = made(value) if isinstance(value, Existing) else unquote(str(value))
        if not text or "/" in text or text in (".", ".."):
            reject()  # another path than intended
        arguments[parameter] = str(text)
        case.path_parameters[parameter] = quote(str(text), safe="")
    for members in (case.query, case.headers, case.body):
        if isinstance(members, dict):
            for member, value in list(members.items()):
                if isinstance(value, Existing):
                    members[member] = made(value, member)
    prepared = prepared_request(case)
    query = parse_qsl(urlsplit(prepared.url or "").query, keep_blank_values=True)
    headers = {
        key.lower(): value if isinstance(value, str) else value.decode("latin-1")
        for key, value in prepared.headers.items()
        if key.lower() not in _NOT_SENT and not key.lower().startswith("x-schemathesis")
    }
    body = prepared.body or b""
    raw = body.encode() if isinstance(body, str) else bytes(body)
    return Sent(name, arguments, tuple(query), headers, raw)


def prepared_request(case: Case) -> requests.PreparedRequest:
    keywords = case.as_transport_kwargs(base_url="http://127.0.0.1")
    known = ("method", "url", "headers", "params", "data", "json", "files")
    try:
        return requests.Request(**{k: keywords[k] for k in known if k in keywords}).prepare()
    except (requests.exceptions.InvalidHeader, UnicodeEncodeError):
        reject()
