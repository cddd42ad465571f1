"""Pause and resume a business: what must be said around the write of its settings.

Before a pause begins or ends, a record says that tasks of this business may be parked. Once it is
over, messages ask for their release: at once, and when every process that knew of the pause has
forgotten it.
"""

from collections.abc import Callable

from msgspec import Struct

from duewheel.rules.messages import ReleaseMessage
from duewheel.rules.wheel import SKEW_MS
from duewheel.stores.known_businesses import KEPT_MS
from duewheel.stores.parking_records import ParkingRecords
from duewheel.workflows.hand_over import HandOver
from duewheel.workflows.unavailable import unavailable_when_throttled

FORGOTTEN_AFTER_SECONDS = -(-(KEPT_MS + SKEW_MS) // 1000) + 1


class Pausing(Struct, frozen=True):
    records: ParkingRecords
    hand_over: HandOver
    random_text: Callable[[], str]

    def announce(self, biz_type: str) -> None:
        with unavailable_when_throttled():
            self.records.mark(biz_type, self.random_text())

    def ask_for_release(self, biz_type: str) -> None:
        """Should both links refuse, the sweeper sends them."""
        release = [ReleaseMessage(biz_type)]
        self.hand_over.send(release)
        self.hand_over.send(release, lambda _: FORGOTTEN_AFTER_SECONDS)
