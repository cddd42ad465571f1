"""The parts of the ingest function."""

import random

from duewheel.rules.access.grants import Access, Grant, Permit, Right
from duewheel.stores.ingest.queue import IngestQueue
from duewheel.wiring.creating import create_idempotent
from duewheel.wiring.process import clock, once, settings, sqs
from duewheel.workflows.ingest.ingest import Ingest


@once
def ingest_queue() -> IngestQueue:
    config = settings()
    return IngestQueue(sqs(), config.ingest_queue_url, config.ingest_dead_letter_queue_url)


@once
def ingest() -> Ingest:
    config = settings()
    grants = tuple(Grant(Right.WRITE, businesses) for businesses in config.ingest_businesses)
    return Ingest(
        clock=clock(),
        create_idempotent=create_idempotent(),
        queue=ingest_queue(),
        permit=Permit(Access("ingest", grants), Right.WRITE),
        allowed=config.allowed_targets,
        random_unit=random.random,
    )
