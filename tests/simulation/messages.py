"""What is known of the messages that were sent to the ingest queue: what each asks for, and whether
SQS has it. The model that their tasks and their dead letters are held against.

A copy is one message in the queue, with an id of its own. Copies of one body under one idempotency
key are one request; without a key each is its own, and none is sent again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Wanted:
    """One task of a message. `number` is its payload, of no other task. `problem`: what it is
    refused with; it may be made all the same where chance decides."""

    number: int
    delay_ms: int = 0
    problem: str | None = None
    may_be_made: bool = True

    @property
    def is_certain(self) -> bool:
        return self.problem is None


@dataclass
class Message:
    """`copies`: when each was sent, by its id. `rival`: another body that was sent under the same
    key, of which one is carried out and the other refused."""

    body: str
    wanted: tuple[Wanted, ...]
    attributes: Mapping[str, str] = field(default_factory=dict)
    copies: dict[str, int] = field(default_factory=dict)
    rival: "Message | None" = None


class Messages:
    def __init__(self) -> None:
        self.sent: list[Message] = []

    @property
    def certain(self) -> int:
        """How many tasks are there, or will be."""
        return sum(one.is_certain for m in self.sent if m.copies for one in m.wanted)
