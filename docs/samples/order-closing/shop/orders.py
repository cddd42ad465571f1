"""What becomes of an order: open, then paid or closed, and never both."""

from contextlib import suppress
from datetime import timedelta
from threading import Lock

from duewheel import Duewheel, errors

PAID_WITHIN = timedelta(days=1)


class Orders:
    """`callback` is where the shop is called when an order's day is over."""

    def __init__(self, duewheel: Duewheel, callback: str) -> None:
        self._duewheel = duewheel
        self._callback = callback
        self._statuses: dict[int, str] = {}
        self._one_at_a_time = Lock()

    def status(self, number: int) -> str | None:
        return self._statuses.get(number)

    def place(self, number: int) -> None:
        """The task's key follows from the order, so a create that is repeated makes no second."""
        self._statuses[number] = "open"
        self._duewheel.tasks.create(
            "orders",
            delay=PAID_WITHIN,
            key=_key(number),
            payload={"order": number},
            callback=self._callback,
        )

    def pay(self, number: int) -> bool:
        if not self._turn(number, "paid"):
            return False
        # Only to spare the call: if it comes all the same, it finds the order paid.
        with suppress(errors.UnknownTask, errors.AlreadySettled, errors.TooLate):
            self._duewheel.tasks.cancel_by_key("orders", _key(number))
        return True

    def close_unpaid(self, number: int) -> bool:
        return self._turn(number, "closed")

    def _turn(self, number: int, status: str) -> bool:
        """An open order alone changes. In a database:
        `UPDATE orders SET status = ... WHERE number = ... AND status = 'open'`."""
        with self._one_at_a_time:
            if self._statuses.get(number) != "open":
                return False
            self._statuses[number] = status
            return True


def _key(number: int) -> str:
    return f"order-{number}:close"
