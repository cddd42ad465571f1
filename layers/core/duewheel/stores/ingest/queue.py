"""The queue of ingest messages, and its dead-letter queue."""

from duewheel.rules.ingest.verdict import DeadLetter
from duewheel.stores.wheel.page_queue import SliceQueue


class IngestQueue(SliceQueue, frozen=True):
    dead_letter_url: str

    def reach(self) -> list[str]:
        return [*super().reach(), *SliceQueue(self.client, self.dead_letter_url).reach()]

    def give_up(self, letter: DeadLetter) -> None:
        self.client.send_message(
            QueueUrl=self.dead_letter_url,
            MessageBody=letter.body,
            MessageAttributes={
                name: {"DataType": "String", "StringValue": value}
                for name, value in letter.attributes.items()
            },
        )
