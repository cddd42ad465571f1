"""The callbacks that a receiver accepts, and the repeats that it recognises."""

import asyncio
import base64
import hmac
import json
import threading
from contextlib import suppress
from datetime import timedelta
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st
from standardwebhooks import Webhook  # another implementation than ours

from duewheel import AsyncReceiver, Delivery, Duewheel, NotGenuine, Receiver, StillAtWork
from duewheel._async.seen import AsyncSeenInMemory
from duewheel._sync.seen import SeenInMemory
from duewheel.errors import UnexpectedAnswer
from duewheel.verifying import TOLERANCE_SECONDS
from tests.support import advance, received

OLD, NEW = (f"whsec_{base64.b64encode(bytes([n]) * 24).decode()}" for n in (1, 2))
SENT_AT = 1_896_078_605
BODY = b'{"order": 17}'
HEADERS = {
    "webhook-id": "AQG5",
    "webhook-timestamp": str(SENT_AT),
    "duewheel-due-at": "2030-01-31T08:30:00.000Z",
    "duewheel-attempt": "2",
    "duewheel-biz-type": "orders",
    "content-type": "application/json",
}


def signature(secret: str, body: bytes = BODY, at: int = SENT_AT) -> str:
    from datetime import UTC, datetime

    return Webhook(secret).sign("AQG5", datetime.fromtimestamp(at, UTC), body.decode())


def receiver(*secrets: str, now: float = SENT_AT) -> Receiver:
    return Receiver(secrets or (NEW,), now=lambda: now)


def signed(**changed: str) -> dict[str, str]:
    return {**HEADERS, "webhook-signature": signature(NEW), **changed}


def test_a_genuine_callback_is_a_delivery() -> None:
    delivery = receiver().verify(signed(), BODY)
    assert (delivery.task_id, delivery.attempt, delivery.biz_type) == ("AQG5", 2, "orders")
    assert delivery.due_at is not None
    assert delivery.due_at.isoformat() == "2030-01-31T08:30:00+00:00"
    assert delivery.payload == {"order": 17}
    assert "17" not in repr(delivery)


@pytest.mark.parametrize("held", [(OLD,), (NEW,), (OLD, NEW), (NEW, OLD)])
@pytest.mark.parametrize("used", [(OLD,), (NEW,), (NEW, OLD)])
def test_one_signature_valid_for_one_secret_is_enough(
    held: tuple[str, ...], used: tuple[str, ...]
) -> None:
    headers = signed(**{"webhook-signature": " ".join(signature(secret) for secret in used)})
    if set(held) & set(used):
        receiver(*held).verify(headers, BODY)
    else:
        with pytest.raises(NotGenuine):
            receiver(*held).verify(headers, BODY)


@pytest.mark.parametrize(
    "forged",
    [
        {"webhook-id": "AQG6"},
        {"webhook-timestamp": str(SENT_AT + 1)},
        {"webhook-timestamp": "soon"},
        {"webhook-signature": ""},
        {"webhook-signature": "v1,"},
        {"webhook-signature": "v1,é"},
        {"webhook-signature": signature(NEW).replace("v1,", "v1a,")},
        {"webhook-signature": signature(NEW).removeprefix("v1,")},
        {"webhook-signature": signature(NEW)[:-1]},
        {"webhook-signature": signature(NEW, b'{"order": 18}')},
    ],
)
def test_altered_headers_are_not_accepted(forged: dict[str, str]) -> None:
    with pytest.raises(NotGenuine):
        receiver().verify(signed(**forged), BODY)


def test_missing_headers_and_an_altered_body_are_not_accepted() -> None:
    with pytest.raises(NotGenuine):
        receiver().verify({}, BODY)
    with pytest.raises(NotGenuine):
        receiver().verify(signed(), BODY + b" ")


@pytest.mark.parametrize("late", [TOLERANCE_SECONDS, -TOLERANCE_SECONDS])
def test_an_old_callback_is_not_accepted(late: int) -> None:
    receiver(now=SENT_AT + late).verify(signed(), BODY)
    with pytest.raises(NotGenuine):
        receiver(now=SENT_AT + late + (1 if late > 0 else -1)).verify(signed(), BODY)


def test_headers_are_accepted_in_the_forms_of_frameworks() -> None:
    headers = signed()
    wsgi: dict[str, Any] = {
        f"HTTP_{name.upper().replace('-', '_')}": text for name, text in headers.items()
    }
    wsgi = {**wsgi, "CONTENT_TYPE": wsgi.pop("HTTP_CONTENT_TYPE"), "wsgi.input": object()}
    wsgi["SERVER_NAME"] = "webhook_id"
    asgi = [(name.encode(), text.encode()) for name, text in headers.items()]
    titled = {name.title(): text for name, text in headers.items()}
    expected = receiver().verify(headers, BODY)
    for given in (wsgi, asgi, titled):
        assert receiver().verify(given, BODY) == expected


LATER = SENT_AT + 400 * 86_400
SPLIT_ELSEWHERE = [
    {"webhook-id": f"AQG5.{SENT_AT}", "webhook-timestamp": str(LATER)},
    {"webhook-id": f"AQG5.{SENT_AT}.x", "webhook-timestamp": str(LATER)},
    {"webhook-id": f"AQG5.{SENT_AT}", "webhook-timestamp": f"+{LATER}"},
    {"webhook-id": f"AQG5.{SENT_AT}", "webhook-timestamp": f"{LATER:_}"},
    {"webhook-id": f"AQG5.{SENT_AT}", "webhook-timestamp": f" {LATER}"},
    {"webhook-id": f"AQG5.{SENT_AT}", "webhook-timestamp": f"{LATER}\n"},
]


@pytest.mark.parametrize("split", SPLIT_ELSEWHERE)
def test_a_signature_is_not_accepted_for_another_split_of_the_signed_text(
    split: dict[str, str],
) -> None:
    """Dots separate id, timestamp and body, and the body may contain dots, too."""
    signed_text = ".".join([split["webhook-id"], split["webhook-timestamp"], '{"order": 18}'])
    body = signed_text.removeprefix(f"AQG5.{SENT_AT}.").encode()
    receiver().verify(signed(**{"webhook-signature": signature(NEW, body)}), body)
    headers = signed(**{"webhook-signature": signature(NEW, body), **split})
    with pytest.raises(NotGenuine):
        receiver(now=LATER).verify(headers, b'{"order": 18}')


SIGNED_IDS = ["AQG5.1", "AQ G5", "", "AQG5\n", "ä", "\ud800", "../AQG5"]
SIGNED_TIMESTAMPS = [f"+{SENT_AT}", f"{SENT_AT:_}", "١٨٩٦٠٧٨٦٠٥", "1" * 5_000]


@pytest.mark.parametrize(
    "named",
    [
        *({"webhook-id": webhook_id} for webhook_id in SIGNED_IDS),
        *({"webhook-timestamp": timestamp} for timestamp in SIGNED_TIMESTAMPS),
    ],
)
def test_malformed_ids_and_timestamps_are_not_accepted(
    named: dict[str, str],
) -> None:
    """They are refused even with a valid signature."""
    given = {**signed(), **named}
    text = f"{given['webhook-id']}.{given['webhook-timestamp']}.".encode(errors="replace") + BODY
    fitting = base64.b64encode(hmac.digest(bytes([2]) * 24, text, "sha256")).decode()
    with pytest.raises(NotGenuine):
        receiver().verify({**given, "webhook-signature": f"v1,{fitting}"}, BODY)


NAMES = [*HEADERS, "webhook-signature", "webhook_id", "HTTP_WEBHOOK_ID", "wsgi.input", "é", ""]
TEXTS = st.text(st.characters(categories=None), max_size=8) | st.sampled_from(
    ["AQG5", str(SENT_AT), "\ud800", "v1,\udfff", signature(NEW), f"v1,é {signature(NEW)}"]
)


@hypothesis.given(st.lists(st.tuples(st.sampled_from(NAMES), TEXTS)), st.booleans())
def test_any_invalid_headers_raise_not_genuine(
    pairs: list[tuple[str, str]], is_mapping: bool
) -> None:
    with suppress(NotGenuine):
        receiver().verify(dict(pairs) if is_mapping else pairs, BODY)


@pytest.mark.parametrize("half", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_an_unpaired_surrogate_in_a_header_is_not_accepted(half: str) -> None:
    for text in ("\ud800", f"{signed()[half]}\ud800"):
        with pytest.raises(NotGenuine):
            receiver().verify(signed(**{half: text}), BODY)


def test_a_name_with_underscores_is_another_header() -> None:
    folded = {"webhook_id": "AQG6", "HTTP_WEBHOOK_ID": "AQG7", "http_duewheel_attempt": "9"}
    for given in ({**signed(), **folded}, [*signed().items(), *folded.items()]):
        delivery = receiver().verify(given, BODY)
        assert (delivery.task_id, delivery.attempt) == ("AQG5", 2)
    with pytest.raises(NotGenuine):
        receiver().verify({name.replace("-", "_"): text for name, text in signed().items()}, BODY)


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "Webhook-ID"])
def test_a_repeated_header_is_not_accepted(name: str) -> None:
    twice = (name, signed()[name.lower()])
    for pairs in ([*signed().items(), twice], [twice, *signed().items()]):
        with pytest.raises(NotGenuine):
            receiver().verify(pairs, BODY)


def test_a_decoded_body_is_refused() -> None:
    with pytest.raises(TypeError):
        receiver().verify(signed(), BODY.decode())  # type: ignore[arg-type]


@pytest.mark.parametrize("secrets", [(), ("",), "whsec_", "whsec_???"])
def test_a_receiver_without_a_secret_is_refused(secrets: Any) -> None:
    with pytest.raises(ValueError, match="secret"):
        Receiver(secrets)


def test_no_repr_shows_a_secret() -> None:
    assert NEW.removeprefix("whsec_") not in repr(vars(receiver(NEW))["_seen"]) + repr(
        receiver(NEW)
    )


@pytest.mark.parametrize(
    ("content_type", "body", "payload"),
    [
        ("application/json; charset=utf-8", b"[1.5]", [1.5]),
        ("application/cloudevents+json", b"null", None),
        ("text/plain; charset=utf-8", "grün".encode(), "grün"),
        ("", b"", None),
    ],
)
def test_a_payload_is_read_by_its_type(content_type: str, body: bytes, payload: object) -> None:
    headers = signed(**{"webhook-signature": signature(NEW, body), "content-type": content_type})
    assert receiver().verify(headers, body).payload == payload


def delivery_of(task_id: str) -> Delivery:
    return Delivery(
        task_id=task_id,
        sent_at_seconds=SENT_AT,
        biz_type=None,
        due_at=None,
        attempt=1,
        content_type="",
        body=b"",
    )


def test_a_task_is_done_once() -> None:
    one = receiver()
    firsts = []
    for task_id in ("a", "a", "b"):
        with one.once(delivery_of(task_id)) as is_first:
            firsts.append(is_first)
    assert firsts == [True, False, True]


def test_a_task_whose_work_failed_may_be_done_again() -> None:
    one = receiver()
    with pytest.raises(KeyError), one.once(delivery_of("a")):
        raise KeyError
    with one.once(delivery_of("a")) as is_first:
        assert is_first


def test_a_repeat_is_refused_while_the_first_delivery_is_at_work() -> None:
    one = receiver()
    with one.once(delivery_of("a")):
        with pytest.raises(StillAtWork), one.once(delivery_of("a")):
            pass
        with one.once(delivery_of("b")) as is_first:
            assert is_first


def test_async_work_is_done_once_and_again_after_it_failed() -> None:
    one = AsyncReceiver(NEW)

    async def run() -> list[bool]:
        firsts = []
        with pytest.raises(KeyError):
            async with one.once(delivery_of("a")):
                raise KeyError
        for _ in range(2):
            async with one.once(delivery_of("a")) as is_first:
                firsts.append(is_first)
        async with one.once(delivery_of("b")):
            with pytest.raises(StillAtWork):
                async with one.once(delivery_of("b")):
                    pass
        return firsts

    assert asyncio.run(run()) == [True, False]


def test_an_async_record_of_tasks_in_a_sync_receiver_is_refused() -> None:
    one = Receiver(NEW, AsyncSeenInMemory())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="AsyncReceiver"), one.once(delivery_of("a")):
        pass


def test_memory_is_bounded_and_evicts_the_oldest() -> None:
    seen = SeenInMemory(remembered_max=2)
    for task_id in "abc":
        assert seen.claim(task_id) == "mine"
        seen.done(task_id)
    assert [seen.claim(task_id) for task_id in "cba"] == ["done", "done", "mine"]


def test_one_of_many_threads_claims_a_task() -> None:
    seen, claims = SeenInMemory(), list[str]()
    threads = [threading.Thread(target=lambda: claims.append(seen.claim("a"))) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(claims) == ["busy"] * 19 + ["mine"]


def test_callbacks_of_the_stack_are_accepted(
    client: Duewheel, biz_type: str, stack_url: str
) -> None:
    client.businesses.configure(biz_type, signing_secrets=[NEW, OLD])
    url = f"{stack_url}/_local/inbox/{biz_type}"
    made = client.tasks.create(biz_type, delay=1, callback=url, payload={"order": "grün"})
    client.tasks.create(biz_type, delay=2, callback={"url": url, "method": "GET"})
    advance(stack_url, timedelta(seconds=5))

    calls = received(stack_url, biz_type)
    assert len(calls) == 2
    for secret in (OLD, NEW):
        for call in calls:
            now = int(call["headers"]["webhook-timestamp"])
            delivery = receiver(secret, now=now).verify(call["headers"], call["body"].encode())
            assert delivery.biz_type == biz_type
    first = receiver(now=now).verify(calls[0]["headers"], calls[0]["body"].encode())
    assert (first.task_id, first.payload) == (made.task_id, {"order": "grün"})
    assert (first.attempt, first.due_at) == (1, made.due_at)


def test_the_notice_of_an_outcome_is_read_from_its_delivery() -> None:
    last_at = "2030-01-31T08:02:00.000Z"
    runs = {
        "count": 3,
        "first_at": "2030-01-31T08:00:00.000Z",
        "last_at": last_at,
    }
    body = {
        "outcome": "missed",
        "task_id": None,
        "biz_type": "orders",
        "key": None,
        "timer_id": "1099511627776",
        "reason": "superseded",
        "due_at": last_at,
        "settled_at": "2030-01-31T09:00:00.000Z",
        "attempts": 0,
        "last_error": None,
        "last_status_code": None,
        "runs": runs,
        "new": 1,
    }
    notice = delivery(json.dumps(body).encode()).notice
    assert (notice.outcome, notice.task_id, notice.reason) == ("missed", None, "superseded")
    assert notice.runs is not None
    assert (notice.runs.count, notice.runs.last_at) == (3, notice.due_at)
    assert notice.extra == {"new": 1}
    with pytest.raises(UnexpectedAnswer):
        _ = delivery(b'{"order": 17}').notice


def delivery(body: bytes) -> Delivery:
    return Delivery(
        task_id="gQG5d09nMAAArHBUPV9EFz7DEEKA",
        sent_at_seconds=1,
        biz_type="orders",
        due_at=None,
        attempt=1,
        content_type="application/json",
        body=body,
    )
