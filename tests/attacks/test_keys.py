"""An admin tries to act as another: records name the key with which a change was made."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from duewheel.rules.access.grants import Access, Grant, Right
from tests.attacks.conftest import stored_items
from tests.support.clock import ManualClock
from tests.support.two_businesses import asked

OPERATOR, PEER = "duewheel-admin", "duewheel-admin-orders"


def key(right: str, businesses: str) -> Any:
    grants = [{"right": right, "businesses": businesses}]
    answer = asked(OPERATOR, "POST", "/v1/keys", {"name": "another's", "grants": grants})
    assert answer.status == 201
    return answer.body


def test_a_peer_gets_no_secret_of_another_admins_key(wired: ManualClock) -> None:
    for peer, businesses in ((PEER, "orders"), (OPERATOR, "*")):
        path = f"/v1/keys/{key('admin', businesses)['key_id']}"
        before = stored_items()
        answer = asked(peer, "POST", f"{path}/rotate")
        assert (answer.status, answer.body["field"]) == (403, "key_id")
        assert stored_items() == before
        assert asked(peer, "DELETE", path).status == 200, "a peer may revoke it"


def test_a_rotation_records_the_caller(wired: ManualClock) -> None:
    for right, businesses, by in (("admin", "orders", OPERATOR), ("write", "orders", PEER)):
        path = f"/v1/keys/{key(right, businesses)['key_id']}"
        assert asked(by, "POST", f"{path}/rotate").status == 200
        latest = asked(by, "GET", f"{path}/changes").body["changes"][0]
        assert (latest["did"], latest["by"].rpartition("/")[2]) == ("rotated", by)


GRANTS = st.lists(
    st.builds(Grant, st.sampled_from(Right), st.sampled_from(["*", "or*", "orders", "others"])),
    min_size=1,
    max_size=3,
).map(tuple)


@given(GRANTS, GRANTS)
def test_of_two_admins_at_most_one_is_above_the_other(
    mine: tuple[Grant, ...], theirs: tuple[Grant, ...]
) -> None:
    administer = [any(one.right is Right.ADMIN for one in grants) for grants in (mine, theirs)]
    if all(administer):
        is_above = Access("a", mine).is_above(theirs)
        assert not (is_above and Access("b", theirs).is_above(mine))
        assert not Access("a", mine).is_above(mine)
