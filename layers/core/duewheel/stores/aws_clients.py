"""Clients, built once per process, and the time that AWS's own replies carry."""

import json
from datetime import UTC
from email.utils import parsedate_to_datetime
from functools import cache
from random import uniform
from threading import Lock
from typing import TYPE_CHECKING, Any

from botocore import __version__ as sdk_version
from botocore.config import Config
from botocore.session import Session

from duewheel import __version__
from duewheel.metrics import THROTTLES, counts
from duewheel.stores.dynamodb import is_conflict, is_refused_for_load

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient
    from mypy_boto3_sqs.client import SQSClient

# The SDK would build one for each request: a quarter of the function calls of a create.
_USER_AGENT = f"duewheel/{__version__} Botocore/{sdk_version}"

# A retry must not be seconds late: the item may have been read in between.
_CONFIG = Config(
    connect_timeout=1,
    read_timeout=2,
    retries={"mode": "standard", "total_max_attempts": 4},
    max_pool_connections=64,
    tcp_keepalive=True,
    user_agent=_USER_AGENT,
    parameter_validation=False,  # checks every value of every item, as types and DynamoDB do
)
# A link to the notifiers that does not answer must not delay the tick: the sender retries by
# itself, and has the other link.
_SEND_CONFIG = Config(
    connect_timeout=1,
    read_timeout=1,
    retries={"mode": "standard", "total_max_attempts": 1},
    max_pool_connections=64,
    tcp_keepalive=True,
    user_agent=_USER_AGENT,
)

# A transaction holds an item for some milliseconds.
_PAUSES_AFTER_CONFLICT_SECONDS = (0.02, 0.05, 0.1, 0.2)

_one_at_a_time = Lock()


@cache
def shared_session() -> Session:
    """One for all clients, so that the SDK's service descriptions are loaded once. It is botocore's
    session; boto3's imports much more."""
    return Session()


def _client(service: str, config: Config) -> Any:
    return shared_session().create_client(service, config=config)


class AwsTime:
    """The latest `Date` header seen. It only rises, so a late reply cannot set it back."""

    def __init__(self) -> None:
        self._latest_ms = 0

    def latest_ms(self) -> int:
        return self._latest_ms

    def observe(self, client: Any) -> None:
        client.meta.events.register("after-call.*.*", self._take_date)

    def _take_date(self, http_response: Any, **_: object) -> None:
        text = http_response.headers.get("date")
        if text is None:
            return
        instant = parsedate_to_datetime(text)
        if instant.tzinfo is None:
            instant = instant.replace(tzinfo=UTC)
        self._latest_ms = max(self._latest_ms, int(instant.timestamp() * 1000))


def count_throttles(client: Any) -> None:
    """Count what a service throttles after the SDK's own retries."""
    client.meta.events.register("after-call.*.*", _count_throttle)


def _count_throttle(parsed: Any, **_: object) -> None:
    counts.add(THROTTLES, is_refused_for_load(parsed))


def retry_conflicts(client: Any) -> None:
    """Retry writes of items that a transaction holds; the SDK would not."""
    client.meta.events.register("needs-retry.dynamodb", _pause_after_conflict)


def _pause_after_conflict(
    response: tuple[Any, Any] | None, attempts: int, **_: object
) -> float | None:
    """None if the answer is no conflict, or after too many conflicts."""
    is_over = attempts > len(_PAUSES_AFTER_CONFLICT_SECONDS)
    if response is None or is_over or not is_conflict(response[1]):
        return None
    longest_seconds = _PAUSES_AFTER_CONFLICT_SECONDS[attempts - 1]
    return uniform(longest_seconds / 2, longest_seconds)  # spreads writers that conflict


def read_queries_as_json(client: Any) -> None:
    """Take the answer of a query as its JSON has it. The SDK checks each attribute for ten types of
    value, which takes twenty times as long and gives the same result."""
    client.meta.events.register("before-parse.dynamodb.Query", _read_as_json)


def _read_as_json(
    response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: object
) -> None:
    body = response_dict["body"]
    if response_dict["status_code"] == 200 and b'"B' not in body:  # the SDK decodes bytes
        customized_response_dict.update(json.loads(body))
        response_dict["body"] = b"{}"


def dynamodb_client() -> "DynamoDBClient":
    client: DynamoDBClient = _client("dynamodb", _CONFIG)
    count_throttles(client)
    retry_conflicts(client)
    read_queries_as_json(client)
    return client


def sqs_client() -> "SQSClient":
    client: SQSClient = _client("sqs", _SEND_CONFIG)
    count_throttles(client)
    return client


def lambda_client() -> Any:
    """Built at its first use, when threads are running. The SDK builds one client at a time."""
    with _one_at_a_time:
        return _client("lambda", _SEND_CONFIG)


class TargetClients:
    """Clients of the services that callbacks call, each built at its first use.

    They never retry: a failed call is a failed attempt, and the task has its own retry policy.
    """

    def __init__(self, seconds_max: int, calls_at_once: int) -> None:
        self._config = Config(
            connect_timeout=3,
            read_timeout=seconds_max,
            retries={"mode": "standard", "total_max_attempts": 1},
            max_pool_connections=calls_at_once,
            tcp_keepalive=True,
            user_agent=_USER_AGENT,
        )
        self._built: dict[str, Any] = {}

    def of(self, service: str) -> Any:
        with _one_at_a_time:
            if service not in self._built:
                self._built[service] = _client(service, self._config)
            return self._built[service]
