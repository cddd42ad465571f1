"""The notice of a dead task to its business: a task of its own, due at once.

Its place follows from the death (the task, its redrives, the instant). It is marked as a notice, so
that its own death produces none.
"""

import json
from hashlib import blake2b

from duewheel.rules.businesses.settings import Business
from duewheel.rules.instants import rfc3339
from duewheel.rules.tasks.task import NewTask, Task
from duewheel.rules.wheel.addresses import TOKEN_BYTES
from duewheel.rules.wheel.sharding import Placement


def wants_notice(task: Task, business: Business) -> bool:
    return business.on_dead is not None and task.notice_of is None


def death_notice(dead: Task, placement: Placement) -> Task:
    """The same for the same death and the same placement, by any process."""
    death = f"{dead.home.name} {dead.redrives}".encode()
    token = blake2b(death, digest_size=TOKEN_BYTES, person=b"on_dead").digest()
    new = NewTask(
        biz_type=dead.biz_type, due_ms=placement.now_ms, callback=None, payload=_payload(dead)
    )
    return new.placed(placement, token, notice_of=dead.task_id)


def _payload(dead: Task) -> str:
    """The payload is the last member, as its exact source text."""
    members = {
        "task_id": dead.task_id,
        "biz_type": dead.biz_type,
        "key": dead.key,
        "reason": dead.reason,
        "due_at": rfc3339(dead.due_at_ms),
        "settled_at": None if dead.settled_ms is None else rfc3339(dead.settled_ms),
        "attempts": dead.attempts,
        "last_error": dead.last_error,
        "last_status_code": dead.history[-1].status_code if dead.history else None,
    }
    text = json.dumps(members, separators=(",", ":"))
    return f'{text[:-1]},"payload":{"null" if dead.payload is None else dead.payload}}}'
