"""The calls on API keys. The grants of a key decide which admin may change it."""

from collections.abc import Mapping

from duewheel.interface.access.api_key_view import (
    ApiKeysView,
    ApiKeyView,
    IssuedApiKeyView,
    api_key_view,
)
from duewheel.interface.history.changes_view import ChangesView, changes_view
from duewheel.interface.http import Answer, Call, Request, administers, encoded, json_answer
from duewheel.rules.access.requests import (
    ApiKeyRotationBody,
    NewApiKeyBody,
    checked_key_id,
    new_api_key,
    overlap_seconds,
)
from duewheel.rules.fields import invalid
from duewheel.rules.query_string import PageQuery, read_query
from duewheel.rules.refusals import ApiKeyEnded, TooManyApiKeys, UnknownApiKey
from duewheel.rules.tasks.idempotency import HEADER
from duewheel.rules.tasks.requests import SINGLE_BYTES_MAX
from duewheel.wiring import api as wiring
from duewheel.wiring import process
from duewheel.workflows.access.api_keys import Issued


def create_key(request: Request) -> Answer:
    _check_header(request)
    new = new_api_key(request.text(SINGLE_BYTES_MAX), process.clock().now_ms())
    issued = wiring.issue_keys().create(new, request.access)
    return _shown_once(issued, 201, location=f"/v1/keys/{issued.key.key_id}")


def _check_header(request: Request) -> None:
    """The answer has a secret, which is not kept, so it cannot be repeated."""
    if request.idempotency_key is not None:
        raise invalid(HEADER, "is not taken: the answer has a secret, so it cannot be repeated.")


def list_keys(request: Request) -> Answer:
    page = wiring.list_keys()(read_query(request.query, PageQuery), request.access)
    now_ms = process.clock().now_ms()
    views = [api_key_view(key, now_ms) for key in page.keys]
    return json_answer(ApiKeysView(views, page.cursor))


def read_key(request: Request, key_id: str) -> Answer:
    key = wiring.issue_keys().find(checked_key_id(key_id), request.access)
    return json_answer(api_key_view(key, process.clock().now_ms()))


def rotate_key(request: Request, key_id: str) -> Answer:
    _check_header(request)
    overlap = overlap_seconds(request.text(SINGLE_BYTES_MAX) if request.body else None)
    issued = wiring.issue_keys().rotate(checked_key_id(key_id), overlap, request.access)
    return _shown_once(issued, 200)


def revoke_key(request: Request, key_id: str) -> Answer:
    key = wiring.issue_keys().revoke(checked_key_id(key_id), request.access)
    return json_answer(api_key_view(key, process.clock().now_ms()))


def list_key_changes(request: Request, key_id: str) -> Answer:
    key = wiring.issue_keys().find(checked_key_id(key_id), request.access)
    return json_answer(changes_view(wiring.read_changes().of_key(key)))


def _shown_once(issued: Issued, status: int, **headers: str) -> Answer:
    """The answer has the key's text, so no log and no cache may keep it."""
    view = api_key_view(issued.key, process.clock().now_ms(), issued.text)
    return Answer(
        status,
        encoded(view),
        headers={"cache-control": "no-store", **headers},
        log_fields={"key_id": issued.key.key_id},
    )


CALLS: dict[str, Mapping[str, Call]] = {
    "/v1/keys": {
        "GET": administers(list_keys, ApiKeysView, query=PageQuery),
        "POST": administers(
            create_key,
            IssuedApiKeyView,
            TooManyApiKeys,
            body=NewApiKeyBody,
            statuses=(201,),
            gives=("Location",),
        ),
    },
    "/v1/keys/{key_id}": {
        "GET": administers(read_key, ApiKeyView, UnknownApiKey),
        "DELETE": administers(revoke_key, ApiKeyView, UnknownApiKey),
    },
    "/v1/keys/{key_id}/rotate": {
        "POST": administers(
            rotate_key,
            IssuedApiKeyView,
            UnknownApiKey,
            ApiKeyEnded,
            body=ApiKeyRotationBody,
            needs_body=False,
        )
    },
    "/v1/keys/{key_id}/changes": {"GET": administers(list_key_changes, ChangesView, UnknownApiKey)},
}
