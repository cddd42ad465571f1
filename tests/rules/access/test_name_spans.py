"""The spans of names are what the grants reach, in order, and nothing else."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from duewheel.rules.access.grants import Access, Grant, Right
from duewheel.rules.access.name_spans import NameSpan, spans_within
from tests.support.cases import each_case

# Few letters, so that names are equal or begin with each other often.
names = st.from_regex(r"[ab0][ab0._-]{0,3}", fullmatch=True)
businesses = names | names.map(lambda name: f"{name}*") | st.just("*")
grants = st.builds(Grant, st.sampled_from(Right), businesses)


def access_to(*businesses: str) -> Access:
    return Access("me", tuple(Grant(Right.READ, one) for one in businesses))


@given(st.lists(grants, max_size=5), st.none() | names, st.lists(names, max_size=20))
def test_the_names_in_the_spans_are_those_within_reach_behind_the_position(
    given_grants: list[Grant], after: str | None, asked: list[str]
) -> None:
    access = Access("me", tuple(given_grants))
    spans = list(spans_within(access, after))
    for name in asked:
        within = [span for span in spans if span.low <= name <= span.high]
        is_wanted = access.reaches(name) and (after is None or name > after)
        assert len(within) == is_wanted
    assert spans == sorted(spans)
    assert all(one.high < two.low for one, two in pairwise(spans))


@each_case(
    ("businesses", "spans"),
    [
        ((), []),
        (("*", "orders", "a*"), [NameSpan("!", "~")]),
        (
            ("orders-*", "orders-eu", "mail"),
            [NameSpan("mail", "mail"), NameSpan("orders-", "orders-~")],
        ),
        (("orders", "orders*"), [NameSpan("orders", "orders~")]),
    ],
)
def test_a_grant_within_another_has_no_span_of_its_own(
    businesses: tuple[str, ...], spans: list[NameSpan]
) -> None:
    assert list(spans_within(access_to(*businesses))) == spans
