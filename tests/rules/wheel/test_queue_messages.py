"""What travels on the slice queue arrives as it was sent, or is refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duewheel.rules.names import BIZ_TYPE
from duewheel.rules.wheel.addresses import TOKEN_BYTES, Address, address_at
from duewheel.rules.wheel.queue_messages import (
    DirectMessage,
    MalformedMessage,
    Message,
    PageMessage,
    ReleaseMessage,
    decode,
    encode,
    encode_event,
    texts_of_event,
)
from duewheel.workflows.delivery.deliver_message import CALLED_CHARACTERS_MAX
from tests.support.cases import each_case

SQS_BYTES_MAX = 1_048_576
PAGE_SIZE_MAX = 100
DIRECT_ENTRIES_MAX = 25

entries = st.builds(
    lambda ms, token, shard, direct: address_at(ms, token, shard=shard, direct=direct),
    st.integers(0, 99_999_999_999_999),
    st.binary(min_size=TOKEN_BYTES, max_size=TOKEN_BYTES),
    st.integers(0, 0xFFFF),
    st.booleans(),
)
messages: st.SearchStrategy[Message] = (
    st.builds(
        PageMessage,
        second=st.integers(0, 99_999_999_999),
        shard=st.integers(0, 0xFFFF),
        page=st.integers(0, 10_000).map(str) | st.sampled_from(["0r", "7r", "7rr"]),
        after=st.none() | entries.map(lambda entry: entry.place),
        places=st.lists(entries.map(lambda entry: entry.place), max_size=5).map(tuple),
        called=st.lists(st.text(), max_size=3).map(tuple),
    )
    | st.builds(
        DirectMessage,
        second=st.integers(0, 99_999_999_999),
        entries=st.lists(entries.map(lambda entry: entry.name), max_size=5).map(tuple),
        called=st.lists(st.text(), max_size=3).map(tuple),
    )
    | st.builds(ReleaseMessage, biz_type=st.from_regex(BIZ_TYPE, fullmatch=True))
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
finite_fields = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(
        ("second", "shard", "page", "after", "places", "entries", "called", "release"),
        json_values,
    ),
)


@given(messages)
def test_a_message_arrives_as_it_was_sent(message: Message) -> None:
    assert decode(encode(message)) == message


def test_the_message_of_a_slice_is_short() -> None:
    assert encode(PageMessage(1_900_000_000, 0)) == ('{"second":1900000000,"shard":0,"page":"0"}')


@given(entries)
def test_the_longest_message_fits_the_queue(entry: Address) -> None:
    rest = PageMessage(
        entry.second, entry.shard, page="10000r", after=None, places=(entry.place,) * PAGE_SIZE_MAX
    )
    direct = DirectMessage(entry.second, (entry.name,) * DIRECT_ENTRIES_MAX)
    assert len(encode(rest).encode()) < SQS_BYTES_MAX / 10
    assert len(encode(direct).encode()) < SQS_BYTES_MAX / 10


def test_what_was_called_fits_the_queue_even_if_it_is_all_quotation_marks() -> None:
    records = ('"' * 500,) * (CALLED_CHARACTERS_MAX // 500)
    places = ("01800000000.500#abcdefghijk",) * PAGE_SIZE_MAX
    assert (
        len(encode(PageMessage(1, 0, page="0r", after=None, places=places, called=records)))
        < SQS_BYTES_MAX
    )


@each_case(
    "text",
    [
        "",
        "no json",
        "null",
        "[]",
        '"v"',
        "{}",
        '{"v":2,"second":1,"shard":0,"page":"0"}',
        '{"shard":0,"page":"0"}',
        '{"second":1,"page":"0"}',
        '{"second":1,"shard":0}',
        '{"second":"soon","shard":0,"page":"0"}',
        '{"second":null,"shard":0,"page":"0"}',
        '{"second":1,"shard":0,"page":"0","places":7}',
        '{"second":1,"shard":0,"page":"0","called":[7]}',
        '{"second":1,"entries":null}',
        '{"entries":[]}',
        '{"second":1,"shard":0,"page":"0","called":{}}',
        '{"second":1.5,"shard":0,"page":"0"}',
        '{"second":1,"shard":65536,"page":"0"}',
        '{"second":1,"shard":0,"page":"x"}',
        '{"second":1,"shard":0,"page":"0","after":7}',
        '{"second":1,"shard":0,"page":"0","places":["nowhere"]}',
        '{"second":1,"entries":["nothing"]}',
        '{"release":"no business"}',
        '{"release":null}',
        '{"release":"orders","part":16}',
    ],
)
def test_what_is_no_message_of_this_service_is_refused(text: str) -> None:
    with pytest.raises(MalformedMessage):
        decode(text)


@given(st.text() | (json_values | finite_fields).map(json.dumps))
def test_whatever_is_on_the_queue_is_a_message_or_is_refused_as_malformed(text: str) -> None:
    try:
        message = decode(text)
    except MalformedMessage:
        return
    assert isinstance(message, PageMessage | DirectMessage | ReleaseMessage)


@given(st.lists(messages, max_size=10))
def test_an_invocation_past_the_queue_brings_its_messages(sent: list[Message]) -> None:
    texts = texts_of_event(json.loads(encode_event(sent)))

    assert texts is not None
    assert list(map(decode, texts)) == sent


def test_an_event_of_the_queue_is_no_invocation_past_it() -> None:
    assert texts_of_event({"Records": []}) is None
