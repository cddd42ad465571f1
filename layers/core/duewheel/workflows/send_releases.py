"""See to it that nothing stays parked: send a release for each business that is not paused.

It is what a message that was refused, lost or died of comes to: another one, within the minute.
"""

from msgspec import Struct

from duewheel.rules.messages import ReleaseMessage
from duewheel.stores.businesses import BusinessStore
from duewheel.stores.parking_records import ParkingRecords
from duewheel.workflows.hand_over import HandOver


class SendReleases(Struct, frozen=True):
    records: ParkingRecords
    businesses: BusinessStore
    hand_over: HandOver

    def __call__(self) -> None:
        """Of a business whose record is damaged nobody knows whether it is paused."""
        businesses = self.businesses.read_many(self.records.biz_types())
        self.hand_over.send(
            ReleaseMessage(biz_type)
            for biz_type, business in businesses.items()
            if not (business.paused or business.damaged)
        )
