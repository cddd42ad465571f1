"""Read the last changes of a definition, also for a while after it was deleted."""

from msgspec import Struct

from duewheel.clock import Clock
from duewheel.rules.access.api_keys import ApiKey
from duewheel.rules.access.change_records import API_KEY
from duewheel.rules.businesses.change_records import BUSINESS
from duewheel.rules.history.changes import KeptChanges
from duewheel.rules.refusals import UnknownBusiness
from duewheel.rules.timers.change_records import TIMER
from duewheel.rules.timers.timer import no_such_timer
from duewheel.stores.businesses.settings import BusinessStore
from duewheel.stores.history.change_records import ChangeRecords
from duewheel.stores.timers.timers import TimerStore
from duewheel.workflows.businesses.read import NOT_CONFIGURED


class ReadChanges(Struct, frozen=True):
    """A definition that was made before changes were kept has none until the next change."""

    clock: Clock
    records: ChangeRecords
    businesses: BusinessStore
    timers: TimerStore

    def of_business(self, biz_type: str) -> KeptChanges:
        kept = self.records.read(BUSINESS, biz_type, self.clock.now_ms())
        if kept is not None:
            return kept
        if not self.businesses.read_whole(biz_type).version:
            raise UnknownBusiness(NOT_CONFIGURED, "biz_type")
        return KeptChanges(biz_type)

    def of_key(self, key: ApiKey) -> KeptChanges:
        kept = self.records.read(API_KEY, key.key_id, self.clock.now_ms())
        return kept or KeptChanges(key.key_id)

    def of_timer(self, timer_id: str) -> KeptChanges:
        kept = self.records.read(TIMER, timer_id, self.clock.now_ms())
        if kept is not None:
            return kept
        if (timer := self.timers.read(timer_id)) is None:
            raise no_such_timer()
        return KeptChanges(timer.biz_type)
