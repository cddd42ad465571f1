"""The template's tables and queues, made once in a process; each test gets them empty.

Making them takes longer than most tests. moto keeps each as one object; a copy of it without items
or messages replaces a new one.
"""

from collections import defaultdict
from copy import copy
from typing import Any

import boto3
from moto.dynamodb.models import dynamodb_backends
from moto.sqs.models import sqs_backends

from local.aws.resources import Resources, create_resources
from local.aws.template import ACCOUNT_ID, REGION, Template


class EmptyResources:
    """The empty resources of one template. To be called in a moto that has none of them yet."""

    def __init__(self, template: Template) -> None:
        self._template = template
        self._made: Resources | None = None
        self._tables: dict[str, Any] = {}
        self._queues: dict[str, Any] = {}

    def __call__(self) -> Resources:
        tables: dict[str, Any] = dynamodb_backends[ACCOUNT_ID][REGION].tables
        queues: dict[str, Any] = sqs_backends[ACCOUNT_ID][REGION].queues
        if self._made is None:
            self._made = create_resources(
                self._template, boto3.client("dynamodb"), boto3.client("sqs")
            )
            self._tables, self._queues = dict(tables), dict(queues)
        tables.update({name: _empty_table(table) for name, table in self._tables.items()})
        queues.update({name: _empty_queue(queue) for name, queue in self._queues.items()})
        for queue in queues.values():
            if queue.dead_letter_queue is not None:
                queue.dead_letter_queue = queues[queue.dead_letter_queue.name]
        return copy(self._made)


def _empty_table(table: Any) -> Any:
    empty = copy(table)
    empty.items = defaultdict(dict)
    return empty


def _empty_queue(queue: Any) -> Any:
    empty = copy(queue)
    empty._messages = []
    empty._pending_messages = set()
    empty.deleted_messages = set()
    return empty
