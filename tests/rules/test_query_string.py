"""How the text of a query is read, whoever wrote it."""

from datetime import UTC, datetime, timedelta, timezone
from urllib.parse import quote, quote_plus, urlencode

from hypothesis import given
from hypothesis import strategies as st

from duewheel.rules.instants import ms_from_rfc3339
from duewheel.rules.query_string import Query, read_query
from duewheel.rules.sweep.audit import AuditQuery, audit_request
from duewheel.rules.sweep.minute_statistics import stats_request
from duewheel.rules.tasks.dead_tasks import DeadQuery
from duewheel.rules.tasks.listing import TasksQuery, list_request
from duewheel.rules.timers.requests import TimersQuery, UpcomingQuery
from tests.support.cases import each_case

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
OFFSETS = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
INSTANTS = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=OFFSETS)


class Named(Query):
    name: str


@given(TEXTS)
def test_forms_and_percent_encoding_write_the_same_text(text: str) -> None:
    for written in (urlencode({"name": text}), f"name={quote(text, safe='')}"):
        assert read_query(written, Named).name == text


@each_case(
    ("query", "kind", "field", "read"),
    [
        ("name_prefix=close+unpaid", TimersQuery, "name_prefix", "close unpaid"),
        ("name_prefix=close%20unpaid", TimersQuery, "name_prefix", "close unpaid"),
        ("name_prefix=c%2B%2B+build", TimersQuery, "name_prefix", "c++ build"),
        ("last_error=Connection+refused", DeadQuery, "last_error", "Connection refused"),
        ("reason=attempts+exhausted", DeadQuery, "reason", "attempts exhausted"),
        ("label=team:ours+too", TimersQuery, "label", ("team:ours too",)),
    ],
)
def test_a_plus_sign_is_a_blank(query: str, kind: type[Query], field: str, read: object) -> None:
    assert getattr(read_query(query, kind), field) == read


@each_case(
    ("kind", "names"),
    [
        (TasksQuery, ("due_from", "due_to")),
        (DeadQuery, ("since", "until")),
        (UpcomingQuery, ("from",)),
        (AuditQuery, ("from", "to")),
    ],
)
def test_an_offset_is_read_as_forms_write_it_and_as_it_is(
    kind: type[Query], names: tuple[str, ...]
) -> None:
    text = "2030-01-01T00:00:00+01:00"
    attributes = dict(zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True))
    for name in names:
        for written in (text, quote_plus(text), quote(text), text.replace("+", "%20")):
            read = read_query(f"{name}={written}", kind)
            assert getattr(read, attributes[name]) == text


@given(INSTANTS)
def test_every_offset_survives(instant: datetime) -> None:
    text, ms = instant.isoformat(), ms_from_rfc3339(instant.astimezone(UTC).isoformat())
    for written in (text, quote_plus(text)):
        assert list_request(f"due_from={written}").query.due_from_ms == ms


def test_calls_with_a_period_take_both_spellings() -> None:
    now_ms = ms_from_rfc3339("2030-03-17T18:40:00Z")
    for plus in ("+", "%2B"):
        from_to = f"from=2030-03-17T18:30:00{plus}01:00&to=2030-03-17T18:31:00{plus}01:00"
        assert stats_request(from_to, now_ms) == stats_request(
            "from=2030-03-17T17:30:00Z&to=2030-03-17T17:31:00Z", now_ms
        )
        assert audit_request(from_to, now_ms) == audit_request(
            "from=2030-03-17T17:30:00Z&to=2030-03-17T17:31:00Z", now_ms
        )
        upcoming = read_query(f"from=2030-03-17T18:30:00{plus}01:00", UpcomingQuery)
        assert upcoming.from_ms == ms_from_rfc3339("2030-03-17T17:30:00Z")
