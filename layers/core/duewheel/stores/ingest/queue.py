"""The queue of ingest messages, and its dead-letter queue."""

from typing import TYPE_CHECKING

from msgspec import Struct

from duewheel.rules.ingest.verdict import DeadLetter
from duewheel.stores.wheel.page_queue import SliceQueue

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient


class IngestQueue(Struct, frozen=True):
    client: "SQSClient"
    url: str
    dead_letter_url: str

    def reach(self) -> list[str]:
        urls = (self.url, self.dead_letter_url)
        return [name for url in urls for name in SliceQueue(self.client, url).reach()]

    def hide(self, receipt_handle: str, seconds: int) -> None:
        SliceQueue(self.client, self.url).hide(receipt_handle, seconds)

    def give_up(self, letter: DeadLetter) -> None:
        self.client.send_message(
            QueueUrl=self.dead_letter_url,
            MessageBody=letter.body,
            MessageAttributes={
                name: {"DataType": "String", "StringValue": value}
                for name, value in letter.attributes.items()
            },
        )
