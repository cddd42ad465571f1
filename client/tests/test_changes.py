"""The client's values for the last changes of a definition."""

from datetime import UTC, datetime

import httpx

from duewheel import Change, Duewheel
from tests.support import Script


def test_changes_are_read_for_each_kind_of_definition() -> None:
    change = {"version": 2, "at": "2030-01-31T08:00:00.001Z", "by": "local", "did": "configured"}
    fields = [{"field": "retention_days", "from": None, "to": 7}]
    script = Script(httpx.Response(200, json={"changes": [{**change, "fields": fields}]}))
    client = Duewheel("http://duewheel.example", transport=script.transport)
    expected = Change(
        version=2,
        at=datetime(2030, 1, 31, 8, 0, 0, 1000, tzinfo=UTC),
        by="local",
        did="configured",
        fields=tuple(fields),
    )
    assert client.businesses.changes("orders") == (expected,)
    assert client.timers.changes("8429985393741370") == (expected,)
    assert client.keys.changes("MntjItAMjKIW") == (expected,)
    assert [request.url.path for request in script.requests] == [
        "/v1/businesses/orders/changes",
        "/v1/timers/8429985393741370/changes",
        "/v1/keys/MntjItAMjKIW/changes",
    ]
