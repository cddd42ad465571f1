"""The shop's database: one file of SQLite, whose statements take less than a millisecond here."""

import sqlite3
from pathlib import Path

SCHEMA = """
create table if not exists orders (number integer primary key, customer text, status text);
create table if not exists mails (customer text, text text);
create table if not exists alerts (text text);
create table if not exists reports (day text primary key, text text);
create table if not exists tasks (task_id text primary key, state text, claimed_at real);
"""
CLAIM_SECONDS = 60  # longer than a callback may take, since a process may die with its claim


class Database:
    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._connection.executescript(SCHEMA)

    def rows(self, statement: str, *values: object) -> list[tuple]:
        return self._connection.execute(statement, values).fetchall()

    def change(self, statement: str, *values: object) -> int:
        """How many rows it changed. A statement is a transaction of its own."""
        return self._connection.execute(statement, values).rowcount

    def close(self) -> None:
        self._connection.close()


class SeenTasks:
    """Which tasks are done, for all processes of the shop: duewheel.AsyncSeen."""

    def __init__(self, database: Database, now) -> None:
        self._database = database
        self._now = now

    async def claim(self, task_id: str) -> str:
        now = self._now()
        is_mine = self._database.change(
            "insert into tasks values (?, 'busy', ?) on conflict (task_id) do update"
            " set claimed_at = excluded.claimed_at where state = 'busy' and claimed_at < ?",
            task_id, now, now - CLAIM_SECONDS,
        )  # fmt: skip
        if is_mine:
            return "mine"
        ((state,),) = self._database.rows("select state from tasks where task_id = ?", task_id)
        return state

    async def done(self, task_id: str) -> None:
        self._database.change("update tasks set state = 'done' where task_id = ?", task_id)

    async def release(self, task_id: str) -> None:
        self._database.change("delete from tasks where task_id = ?", task_id)
