"""The nightly report: work that takes longer than a call may, and says how far it is."""

import asyncio

from duewheel import AsyncDuewheel, Delivery, errors
from shop.database import Database

WITHIN_SECONDS = 60  # after which the report counts as failed, unless it says that it goes on


class Reports:
    def __init__(self, duewheel: AsyncDuewheel, database: Database) -> None:
        self._duewheel = duewheel
        self._database = database
        self._writing: set[asyncio.Task] = set()

    def begin(self, delivery: Delivery) -> None:
        task = asyncio.create_task(self._write(delivery))
        self._writing.add(task)  # the loop alone keeps no task
        task.add_done_callback(self._writing.discard)

    async def _write(self, delivery: Delivery) -> None:
        """Written anew by each attempt: the day is the report's key, so none is written twice."""
        try:
            async with self._duewheel.work(delivery.task_id, delivery.completion_token) as work:
                lines = []
                for status in ("open", "paying", "paid", "closed"):
                    counted = "select count(*) from orders where status = ?"
                    lines.append(f"{self._database.rows(counted, status)[0][0]} {status}")
                    await work.progress(f"{len(lines)} of 4 lines")
                text = ", ".join(lines)
                day = delivery.payload["night"][:10]
                self._database.change("insert or replace into reports values (?, ?)", day, text)
                work.result = text
        except errors.NotRunning:
            pass  # cancelled, or another attempt has begun
