"""Keys that were left without a TTL when their tasks ended: a notifier died in between, or DynamoDB
refused the write.

The sweep meets every task once after its end, so no such key is left for ever.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from duewheel.log import logger
from duewheel.rules.sweep_verdict import HomeState
from duewheel.rules.task import Status
from duewheel.stores.keys import key_named, release
from duewheel.stores.tasks import TaskStore
from duewheel.stores.unprocessed import READS_PER_BATCH, chunks, get_batch


class LeftKeys(Struct, frozen=True):
    tasks: TaskStore

    def release(self, homes: Iterable[HomeState], second: int) -> None:
        """Of tasks that ended on an entry of this second, which are `homes` or some of them. The
        keys are read eventually consistent: the sweep comes long after the end. A task that
        somebody has damaged, so that it has no TTL itself, gives its key none."""
        ended: dict[tuple[str, str], list[HomeState]] = defaultdict(list)
        for home in homes:
            is_ended = home.status is not Status.PENDING and home.entry.second == second
            if is_ended and home.key is not None and home.expires_at is not None:
                ended[_name(key_named(home.biz_type, home.key))].append(home)
        for chunk in chunks(list(ended), READS_PER_BATCH):
            keys = [{"slot": {"S": slot}, "place": {"S": place}} for slot, place in chunk]
            table = self.tasks
            for item in get_batch(table.client, table.clock, table.table, keys, strongly=False):
                if "expires_at" not in item:
                    self._release(item, ended[_name(item)])

    def _release(self, item: Any, ended: Iterable[HomeState]) -> None:
        for home in ended:
            if item.get("task") == {"S": home.home.name}:
                key = {"slot": item["slot"], "place": item["place"]}
                release(self.tasks, key, home.home, home.redrives, home.expires_at)
                logger.info("key released", action="key-released", task_id=home.home.task_id)


def _name(item: Any) -> tuple[str, str]:
    return item["slot"]["S"], item["place"]["S"]
