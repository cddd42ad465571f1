"""moto in this process, behind one lock and on the stack's clock.

Invariant: one AWS call at a time, from its first condition to its last write; moto alone is not
atomic under threads. Queue delays, visibility and the `Date` header of every reply follow the given
clock. Long polls would hold the lock: receive with `WaitTimeSeconds=0`. Asynchronous invocations go
to `accept_invocation`, others to `answer_invocation`, and do not hold the lock.

In tests:

    @pytest.fixture
    def aws(clock):  # anything that has now_ms()
        with Emulator(clock) as emulator:
            yield emulator
"""

import gc
import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from datetime import UTC, datetime
from email.utils import formatdate
from functools import cache
from threading import RLock
from types import TracebackType
from typing import Any, Protocol
from unittest.mock import patch

from moto import mock_aws
from moto.core import models as moto_core
from moto.core import responses
from moto.core.model_instances import reset_model_data
from moto.core.models import botocore_stubber
from moto.core.utils import method_names_from_class
from moto.dynamodb.models import dynamodb_backends
from moto.dynamodb.models.dynamo_type import DynamoType
from moto.events import models as events_models
from moto.events.utils import EventTemplateParser
from moto.sqs import models as sqs_models
from moto.sqs.models import SQSBackend, sqs_backends
from moto.stepfunctions import models as states_models

from local.aws.invocations import ACCEPTED, Answer, Invocation, invocation_of
from local.aws.patches.attribute_values import values_of_one_type
from local.aws.patches.condition_expressions import conditions_read_once
from local.aws.patches.long_queues import queues_counted_when_asked
from local.aws.patches.partition_query import query_within_its_partition
from local.aws.patches.projections import projections_of_whole_attributes
from local.aws.patches.quick_sdk import sdk_without_idle_work
from local.aws.patches.short_way import answered_the_short_way
from local.aws.patches.straight_calls import calls_without_http
from local.aws.patches.touched_items import transactions_within_their_items
from local.aws.patches.update_expressions import update_expressions_read_once
from local.aws.template import ACCOUNT_ID, REGION
from local.aws.time_to_live import Item, delete_expired
from local.aws.written_keys import WrittenKeys
from local.chaos.partial_reads import cut_where_large

FORGET_EVERY_CALLS = 1_000
# The same answers with less work; `make bench-patches` prints what each one saves.
PATCHES: Sequence[Callable[[], AbstractContextManager[None]]] = (
    query_within_its_partition,
    projections_of_whole_attributes,
    update_expressions_read_once,
    conditions_read_once,
    transactions_within_their_items,
    values_of_one_type,
    queues_counted_when_asked,
    sdk_without_idle_work,
    calls_without_http,
)


class HasNow(Protocol):
    def now_ms(self) -> int: ...


def collect_rarely() -> None:
    """A full collection looks at all that was imported, and at all items of the tables, which stay:
    it stops the process for a tenth of a second and longer."""
    gc.freeze()
    gc.set_threshold(5_000, 20, 1_000)


class Emulator:
    patches = PATCHES

    def __init__(self, clock: HasNow) -> None:
        self._clock = clock
        self._lock = RLock()
        self._calls = 0
        self._last_call = 0.0
        self._written: dict[str, WrittenKeys] = {}  # by table
        self._undo = ExitStack()
        self.accept_invocation: Callable[[Invocation], None] | None = None
        self.answer_invocation: Callable[[Invocation], Answer] | None = None
        self._moto: Callable[[Any], Any] = botocore_stubber.process_request

    def __enter__(self) -> "Emulator":
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        with ExitStack() as started:
            started.enter_context(patch.dict(os.environ, {"AWS_DEFAULT_REGION": REGION}))
            # Only the SDK sends requests here: moto need not answer the `requests` library as well.
            started.enter_context(patch.object(moto_core, "RESPONSES_METHODS", []))
            for name in ("AWS_PROFILE", "AWS_ENDPOINT_URL"):
                os.environ.pop(name, None)  # restored by the line above
            started.enter_context(mock_aws())
            for target, name, replacement in (
                (botocore_stubber, "process_request", self._handle_alone),
                (events_models, "unix_time", lambda: self._clock.now_ms() / 1000),
                (states_models, "utcnow", self._utcnow),
                (sqs_models, "unix_time", lambda: self._clock.now_ms() / 1000),
                (sqs_models, "unix_time_millis", lambda: float(self._clock.now_ms())),
                (sqs_models.Message, "visible", property(self._is_visible)),
                (SQSBackend, "is_message_valid_based_on_retention_period", self._is_retained),
                (responses, "method_names_from_class", cache(method_names_from_class)),
                (EventTemplateParser, "parse", staticmethod(_event_as_it_is)),
            ):
                started.enter_context(patch.object(target, name, replacement))
            for less_work in self.patches:
                started.enter_context(less_work())
            self._undo = started.pop_all()

    def stop(self) -> None:
        with self._lock:
            self._undo.close()

    def items(
        self, table_name: str, attributes: Collection[str] | None = None
    ) -> list[dict[str, Any]]:
        """Every item of a table in DynamoDB JSON, with only some attributes, in no order."""
        with self._lock:
            table: Any = dynamodb_backends[ACCOUNT_ID][REGION].tables[table_name]
            return [
                _attributes_of(item, attributes)
                for partition in table.items.values()
                for item in (partition.values() if table.has_range_key else [partition])
            ]

    def item(self, table_name: str, key: Item) -> Item | None:
        """One item in DynamoDB JSON, without a request."""
        with self._lock:
            found = self._stored(table_name, key)
            return None if found is None else _attributes_of(found, None)

    def set_attribute(self, table_name: str, key: Item, name: str, value: dict[str, Any]) -> None:
        """Of an item that is there, without a request. Not for the items whose written partitions
        are asked for."""
        with self._lock:
            found = self._stored(table_name, key)
            if found is None or table_name in self._written:
                raise LookupError(f"{table_name} has no such item, or its writes are watched")
            found.attrs[name] = DynamoType(value)

    def _stored(self, table_name: str, key: Item) -> Any:
        table: Any = dynamodb_backends[ACCOUNT_ID][REGION].tables[table_name]
        partition = table.items.get(DynamoType(key[table.hash_key_attr]), {})
        return partition.get(DynamoType(key[table.range_key_attr]))

    def written_partitions(
        self, table_name: str, attributes: Collection[str]
    ) -> dict[str, list[dict[str, Any]]]:
        """The partitions of a table with a range key that were written since this was last asked,
        each with all its items, as `items` has them. The first time: every one."""
        with self._lock:
            table: Any = dynamodb_backends[ACCOUNT_ID][REGION].tables[table_name]
            known = self._written.get(table_name)
            if known is None:
                self._written[table_name] = WrittenKeys(table_name, table.hash_key_attr)
                keys = {key.value for key in table.items}
            else:
                keys = known.take()
            return {
                key: [
                    _attributes_of(item, attributes)
                    for item in table.items.get(DynamoType({"S": key}), {}).values()
                ]
                for key in keys
            }

    def delete_expired(
        self, is_its_time: Callable[[Item, int], bool] = lambda _, __: True
    ) -> dict[str, list[Item]]:
        """Delete expired items, as TTL does. Returns them by table."""
        with self._lock:
            tables: Any = dynamodb_backends[ACCOUNT_ID][REGION].tables
            now_seconds = self._clock.now_ms() / 1000
            gone = {
                name: list(delete_expired(table, now_seconds, is_its_time))
                for name, table in tables.items()
            }
            for name, written in self._written.items():
                written.add(gone[name])
            return gone

    def has_partition(self, table_name: str, key: str) -> bool:
        """Whether an item was ever stored under this partition key."""
        with self._lock:
            table: Any = dynamodb_backends[ACCOUNT_ID][REGION].tables[table_name]
            return DynamoType({"S": key}) in table.items

    def messages_visible_at_ms(self, queue_url: str) -> list[float]:
        """The instants from which the messages of the queue may be received."""
        with self._lock:
            queue = sqs_backends[ACCOUNT_ID][REGION].queues[queue_url.rsplit("/", 1)[-1]]
            return [max(m.visible_at, m.delayed_until) for m in queue._messages]

    def has_visible(self, queue_url: str) -> bool:
        return any(ms <= self._clock.now_ms() for ms in self.messages_visible_at_ms(queue_url))

    def quiet_seconds(self) -> float:
        """How long ago, in real time, the last call ended; reads of a queue do not count."""
        return time.monotonic() - self._last_call

    def _handle_alone(self, request: Any) -> Any:
        answer = self._invoked(request)
        with self._lock:
            self._calls += 1
            if self._calls % FORGET_EVERY_CALLS == 0:
                reset_model_data()  # moto keeps every item it ever copied, for a dashboard
            reply = answer or self._answered(request)
            operation = _operation(request)
            if operation != "ReceiveMessage":
                self._last_call = time.monotonic()
            for written in self._written.values():
                written.note(operation, request.body)
            if reply is None:
                return None
            status, headers, body = reply
            return status, dict(self._on_the_clock(headers)), body

    def _answered(self, request: Any) -> Any:
        reply = answered_the_short_way(request) or self._moto(request)
        if reply is not None and _operation(request) == "BatchGetItem":
            return cut_where_large(request.body, reply, _hash_key)
        return reply

    def _invoked(self, request: Any) -> Answer | None:
        """moto's Lambda runs functions in containers; here others run them."""
        invocation = invocation_of(request.method, request.url, request.headers, request.body)
        if invocation is None:
            return None
        if invocation.is_awaited:
            return self.answer_invocation and self.answer_invocation(invocation)
        if self.accept_invocation is None:
            return None
        self.accept_invocation(invocation)
        return ACCEPTED

    def _on_the_clock(self, headers: Any) -> Iterator[tuple[str, str]]:
        yield "Date", formatdate(self._clock.now_ms() // 1000, usegmt=True)
        for name, value in headers.items():
            if name.lower() != "date":
                yield name, value

    def _utcnow(self) -> datetime:
        return datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC)

    def _is_visible(self, message: Any) -> bool:
        """moto requires the instant to be past, which never happens with a frozen clock."""
        return bool(self._clock.now_ms() >= message.visible_at)

    def _is_retained(self, queue_name: str, message: Any) -> bool:
        """moto counts all messages of the queue, thrice, before it compares these two."""
        queue: Any = sqs_backends[ACCOUNT_ID][REGION].get_queue(queue_name)
        ends_ms = message.sent_timestamp + queue.message_retention_period * 1000
        return bool(ends_ms > self._clock.now_ms())


def _attributes_of(item: Any, names: Collection[str] | None) -> dict[str, Any]:
    attributes = item.attrs
    kept = attributes if names is None else [name for name in names if name in attributes]
    return {name: attributes[name].to_json() for name in kept}


def _event_as_it_is(
    input_template: str | None, input_paths_map: Mapping[str, str], event: Mapping[str, Any]
) -> dict[str, Any]:
    """The event that a rule passes to its target. moto's own code needs a parser for templates,
    which are not used here."""
    if input_template or input_paths_map:
        raise NotImplementedError("rules with an input transformer are not emulated")
    return {name: value for name, value in event.items() if name != "ingestion-time"}


def _hash_key(table_name: str) -> str:
    table: Any = dynamodb_backends[ACCOUNT_ID][REGION].tables[table_name]
    return str(table.hash_key_attr)


def _operation(request: Any) -> str:
    target = request.headers.get("X-Amz-Target", b"")
    name = target.decode() if isinstance(target, bytes) else str(target)
    return name.rpartition(".")[2]
