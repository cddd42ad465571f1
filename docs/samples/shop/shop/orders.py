"""Orders: open, paying, paid; or closed. Each change of state is one statement.

The task is handed over first, then the database is changed: a process may die between the two, and
a task that finds nothing to do does nothing. Keys follow from the order: a repeat makes no second.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta

from duewheel import AsyncDuewheel, errors
from shop.database import Database

PAID_WITHIN = timedelta(days=1)

Charge = Callable[[int], Awaitable[None]]


class BankDown(Exception):
    """A charge raises it: the task is tried again."""


class Orders:
    """`charge` takes the money for an order, once however often it is asked."""

    def __init__(self, duewheel: AsyncDuewheel, database: Database, charge: Charge) -> None:
        self._duewheel = duewheel
        self._database = database
        self._charge = charge

    def status(self, number: int) -> str | None:
        rows = self._database.rows("select status from orders where number = ?", number)
        return rows[0][0] if rows else None

    async def place(self, number: int, customer: str) -> None:
        await self._hand_over(number, "close", PAID_WITHIN)
        self._database.change(
            "insert into orders values (?, ?, 'open') on conflict do nothing", number, customer
        )

    async def pay(self, number: int) -> bool:
        """The customer is answered at once; the bank is called by the task, as often as needed."""
        if self.status(number) != "open":
            return False
        await self._hand_over(number, "charge", 0)
        return True

    async def charge(self, number: int) -> None:
        if not self._turn(number, "open", "paying") and self.status(number) != "paying":
            return
        await self._charge(number)
        # Only to spare the call: if it comes all the same, it finds the order paid.
        with suppress(errors.UnknownTask, errors.AlreadySettled, errors.TooLate):
            await self._duewheel.tasks.cancel_by_key("orders", f"order-{number}:close")
        await self._tell(number, f"Order {number} is paid.")
        self._turn(number, "paying", "paid")

    async def close_unpaid(self, number: int) -> None:
        if self.status(number) == "open":
            await self._tell(number, f"Order {number} is closed: it was not paid.")
            self._turn(number, "open", "closed")

    async def _hand_over(self, number: int, what: str, delay: float | timedelta) -> None:
        payload = {"do": what, "order": number}
        key = f"order-{number}:{what}"
        await self._duewheel.tasks.create("orders", delay=delay, key=key, payload=payload)

    async def _tell(self, number: int, text: str) -> None:
        """By mail, behind the earlier mails to the same customer."""
        ((customer,),) = self._database.rows("select customer from orders where number = ?", number)
        payload = {"do": "mail", "customer": customer, "text": text}
        await self._duewheel.tasks.create("mails", delay=0, flow_key=customer, payload=payload)

    def _turn(self, number: int, before: str, after: str) -> bool:
        statement = "update orders set status = ? where number = ? and status = ?"
        return bool(self._database.change(statement, after, number, before))
