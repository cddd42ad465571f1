"""The overview over HTTP: its open operations are those within reach of the caller."""

import pytest

from tests.functions.conftest import call
from tests.support.clock import ManualClock
from tests.support.two_businesses import OPERATOR, asked

CANCEL = {"action": "cancel", "filter": {}}


def shown(who: str, query: str = "") -> list[str]:
    answer = asked(who, "GET", f"/v1/overview{query}")
    assert answer.status == 200
    return [one["biz_type"] for one in answer.body["operations"]]


def test_open_operations_are_shown_within_reach_and_on_the_first_page(wired: ManualClock) -> None:
    for name in ("mine", "other"):
        assert call("PUT", f"/v1/businesses/{name}", {"retention_days": 7})[0] == 201
        assert call("POST", "/v1/operations", {**CANCEL, "biz_type": name})[0] == 201
    assert sorted(shown(OPERATOR)) == ["mine", "other"]
    assert shown("duewheel-read-mine") == ["mine"]
    assert shown("duewheel-read-nobodys") == []
    cursor = asked(OPERATOR, "GET", "/v1/overview?limit=1").body["cursor"]
    assert shown(OPERATOR, f"?cursor={cursor}") == []


@pytest.mark.parametrize("query", ["limit=0", "limit=101", "cursor=abc", "biz_type=orders"])
def test_an_invalid_query_is_refused_with_the_name_of_its_field(
    wired: ManualClock, query: str
) -> None:
    status, problem = call("GET", "/v1/overview", query=query)
    assert (status, problem["field"]) == (422, query.split("=")[0])


def test_an_empty_service_has_an_overview(wired: ManualClock) -> None:
    status, answer = call("GET", "/v1/overview")
    assert status == 200
    assert (answer["businesses"], answer["minutes"], answer["operations"]) == ([], [], [])
    assert answer["looked_at"] == {"businesses": 0}
