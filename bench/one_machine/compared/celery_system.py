"""Celery with Redis, each call an `apply_async` with an ETA.

Settings in its favour: threads instead of a process for each core, since calls mostly wait; no
result is kept. `VISIBILITY_SECONDS` is Redis's visibility timeout, 3,600 by default; if it is set,
Celery searches for visible tasks as often as possible. `ACKS_LATE`: a task is removed from the
queue when it ends; by default when it begins.
"""

import os
from datetime import UTC, datetime
from typing import Any

from celery import Celery

from bench.one_machine.compared.calling import BODY, call
from bench.one_machine.compared.driver import serve

app = Celery("bench", broker=os.environ["REDIS_URL"])
app.conf.update(
    task_ignore_result=True,
    task_acks_late="ACKS_LATE" in os.environ,
    broker_connection_retry_on_startup=True,
)
if "VISIBILITY_SECONDS" in os.environ:
    app.conf.broker_transport_options = {
        "visibility_timeout": int(os.environ["VISIBILITY_SECONDS"]),
        "unacked_restore_throttle": 1,  # by default a search every 100 s
    }


@app.task(name="bench.call")
def call_sink(url: str, payload: str) -> None:
    call(url)


class CelerySystem:
    def create(self, due_ms: int, url: str) -> Any:
        eta = datetime.fromtimestamp(due_ms / 1000, UTC)
        return call_sink.apply_async(args=[url, BODY.decode()], eta=eta).id

    def cancel(self, identifier: Any) -> bool:
        app.control.revoke(identifier)  # sent to all workers, which do not answer
        return False

    def waiting(self) -> int:
        """In the queue, or sent to a worker that has not removed it from the queue."""
        with app.connection_for_read() as connection:
            redis = connection.default_channel.client
            return int(redis.llen("celery")) + int(redis.hlen("unacked"))

    def mend(self) -> int:
        return 0


if __name__ == "__main__":
    serve(CelerySystem())
