"""Replaces the movable clock if AWS is not moto: time is read, never moved."""

from dataclasses import dataclass
from typing import NoReturn

from local.control.clock import MovableClock
from local.control.problems import BadInput


@dataclass(frozen=True, slots=True)
class RealTime:
    clock: MovableClock
    endpoint: str

    def now_ms(self) -> int:
        return self.clock.now_ms()

    @property
    def is_frozen(self) -> bool:
        return False

    def freeze(self) -> None:
        self._refuse()

    def unfreeze(self) -> None:
        """Do nothing: real time always runs."""

    def reset(self) -> bool:
        return True

    def advance(self, milliseconds: int) -> int:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise BadInput(
            f"The clock cannot be moved: the queue at {self.endpoint} would not follow it. "
            "Start without AWS_ENDPOINT_URL to move the clock.",
            status=409,
        )
