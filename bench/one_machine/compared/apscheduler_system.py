"""APScheduler 3 with its jobs in PostgreSQL, each call a job with a date.

Schedulers must not share a job store, so the process that creates jobs also runs them. Settings in
its favour: as many threads as the others, and late jobs are not dropped. `MISFIRE=default` keeps
the default grace of one second.
"""

import os
from datetime import UTC, datetime
from typing import Any

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.base import JobLookupError
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler

from bench.one_machine.compared.calling import BODY, THREADS, call
from bench.one_machine.compared.driver import serve


def call_sink(url: str, payload: str) -> None:
    call(url)


class ApschedulerSystem:
    def __init__(self) -> None:
        url = os.environ["POSTGRES_URL"].replace("postgresql://", "postgresql+psycopg://", 1)
        defaults = {} if os.environ.get("MISFIRE") == "default" else {"misfire_grace_time": None}
        self._scheduler = BackgroundScheduler(
            jobstores={"default": SQLAlchemyJobStore(url)},
            executors={"default": ThreadPoolExecutor(THREADS)},
            job_defaults=defaults,
            timezone=UTC,
        )
        self._scheduler.start()

    def create(self, due_ms: int, url: str) -> Any:
        due = datetime.fromtimestamp(due_ms / 1000, UTC)
        return self._scheduler.add_job(
            "bench.one_machine.compared.apscheduler_system:call_sink",
            "date",
            run_date=due,
            args=[url, BODY.decode()],
        ).id

    def cancel(self, identifier: Any) -> bool:
        try:
            self._scheduler.remove_job(identifier)
        except JobLookupError:
            return False
        return True

    def waiting(self) -> int:
        return len(self._scheduler.get_jobs())

    def mend(self) -> int:
        return 0


if __name__ == "__main__":
    serve(ApschedulerSystem())
