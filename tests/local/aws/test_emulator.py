"""moto behind one lock, on a clock that the test sets."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import boto3
import pytest
from botocore.exceptions import ClientError

from local.aws.emulator import Emulator
from local.control.clock import MovableClock

START_MS = 1_800_000_000_000
ROUNDS = 20
THREADS = 8


@pytest.fixture
def still() -> MovableClock:
    return MovableClock(START_MS, frozen=True)


@pytest.fixture
def aws(still: MovableClock):
    with Emulator(still) as emulator:
        yield emulator


@pytest.fixture
def queue_url(aws: Emulator) -> str:
    return boto3.client("sqs").create_queue(QueueName="q", Attributes={"VisibilityTimeout": "30"})[
        "QueueUrl"
    ]


def received(queue_url: str) -> list[dict]:
    answer = boto3.client("sqs").receive_message(QueueUrl=queue_url, WaitTimeSeconds=0)
    return answer.get("Messages", [])


def test_one_of_many_concurrent_conditional_updates_succeeds(aws: Emulator) -> None:
    client = boto3.client("dynamodb")
    client.create_table(
        TableName="t",
        KeySchema=[{"AttributeName": "k", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "k", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    together = Barrier(THREADS)

    def claims(key: str) -> bool:
        together.wait()
        try:
            client.update_item(
                TableName="t",
                Key={"k": {"S": key}},
                UpdateExpression="SET o = :o",
                ConditionExpression="attribute_not_exists(o)",
                ExpressionAttributeValues={":o": {"S": "me"}},
            )
        except ClientError:
            return False
        return True

    with ThreadPoolExecutor(THREADS) as pool:
        for number in range(ROUNDS):
            assert sum(pool.map(claims, [str(number)] * THREADS)) == 1


def test_replies_have_the_date_of_the_clock(aws: Emulator) -> None:
    answer = boto3.client("dynamodb").list_tables()
    assert answer["ResponseMetadata"]["HTTPHeaders"]["date"] == "Fri, 15 Jan 2027 08:00:00 GMT"


def test_a_delayed_message_is_visible_from_its_instant_by_the_clock(
    still: MovableClock, queue_url: str
) -> None:
    boto3.client("sqs").send_message(QueueUrl=queue_url, MessageBody="x", DelaySeconds=900)
    still.set_ms(START_MS + 899_999)
    assert not received(queue_url)
    still.set_ms(START_MS + 900_000)
    assert received(queue_url)


def test_a_hidden_message_is_visible_again_at_its_instant_by_the_clock(
    still: MovableClock, queue_url: str
) -> None:
    boto3.client("sqs").send_message(QueueUrl=queue_url, MessageBody="x")
    assert received(queue_url)
    still.set_ms(START_MS + 29_999)
    assert not received(queue_url)
    still.set_ms(START_MS + 30_000)
    assert received(queue_url)


def test_a_message_made_visible_is_received_without_a_move_of_the_clock(queue_url: str) -> None:
    client = boto3.client("sqs")
    client.send_message(QueueUrl=queue_url, MessageBody="x")
    handle = received(queue_url)[0]["ReceiptHandle"]
    client.change_message_visibility(QueueUrl=queue_url, ReceiptHandle=handle, VisibilityTimeout=0)
    assert received(queue_url)


def test_the_emulator_returns_the_instants_at_which_messages_become_visible(
    aws: Emulator, still: MovableClock, queue_url: str
) -> None:
    client = boto3.client("sqs")
    client.send_message(QueueUrl=queue_url, MessageBody="later", DelaySeconds=5)
    client.send_message(QueueUrl=queue_url, MessageBody="now")
    assert sorted(aws.messages_visible_at_ms(queue_url)) == [0.0, START_MS + 5_000]


@pytest.mark.parametrize(("seconds", "number"), [(59, 1), (60, 0)])
def test_a_message_is_kept_for_the_queues_retention_period(
    aws: Emulator, still: MovableClock, seconds: int, number: int
) -> None:
    sqs = boto3.client("sqs")
    url = sqs.create_queue(QueueName="brief", Attributes={"MessageRetentionPeriod": "60"})
    sqs.send_message(QueueUrl=url["QueueUrl"], MessageBody="late?")
    still.set_ms(START_MS + seconds * 1000)
    assert len(received(url["QueueUrl"])) == number
