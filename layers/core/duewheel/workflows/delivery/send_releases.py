"""Send a release for each business that is not paused, so that nothing stays parked.

The sweeper does so every minute: it makes up for a message that was refused, lost or died of. A
module of its own, since the release itself brings asyncio, which the sweeper does not load.
"""

from msgspec import Struct

from duewheel.rules.wheel.queue_messages import ReleaseMessage
from duewheel.stores.businesses.parking_state import ParkingRecords
from duewheel.stores.businesses.settings import BusinessStore
from duewheel.workflows.wheel.send_messages import MessageSender


class SendReleases(Struct, frozen=True):
    records: ParkingRecords
    businesses: BusinessStore
    message_sender: MessageSender

    def __call__(self) -> None:
        """A business with a damaged record may be paused: it is left out."""
        businesses = self.businesses.read_many(self.records.biz_types())
        self.message_sender.send(
            ReleaseMessage(biz_type)
            for biz_type, business in businesses.items()
            if not (business.paused or business.damaged)
        )
