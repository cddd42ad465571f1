"""A task whose due instant each beat moves to later, and that is called when the beats stop."""

from datetime import datetime

from duewheel._async.creating import put_body
from duewheel._async.transport import AsyncTransport
from duewheel.calls import ALWAYS, by_key, changing, reading
from duewheel.errors import AlreadySettled, UnknownTask
from duewheel.requests import NewTask
from duewheel.values import Task


class AsyncWatchdog:
    def __init__(
        self, transport: AsyncTransport, task: NewTask, key: str, max_due_at: datetime | None
    ) -> None:
        self._transport = transport
        self._path = by_key(task.biz_type, key)
        self._body = put_body(task, max_due_at)

    async def beat(self) -> Task:
        """A beat whose answer is lost is repeated: the repeat is a beat as well."""
        call = changing("PUT", self._path, self._body, repeatable_seconds=ALWAYS)
        return Task.read(await self._transport.send(call))

    async def stop(self) -> bool:
        """Cancel the task. False if there is no live task: it has been called or stopped, or there
        was no beat. Raises `TooLate` when the call may be under way."""
        try:
            # Read first: a task that is cancelled already is cancelled again without an error.
            if Task.read(await self._transport.send(reading(self._path))).status != "pending":
                return False
            await self._transport.send(changing("DELETE", self._path, repeatable_seconds=ALWAYS))
        except (UnknownTask, AlreadySettled):
            return False
        return True
