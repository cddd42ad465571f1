"""Addresses on the wheel: slots, places, and the task ids that contain them.

Each slot, place and task id is built and parsed in this module only. Within a second the sort order
is: header `#`, entries `.`, direct entries `/`, page leases `~`. So a read of a slice's entries
reads only these, and direct entries cost it nothing.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from collections.abc import Iterable
from hashlib import blake2s
from typing import Annotated

from msgspec import Meta, Struct

from duewheel.rules.names import parts_of
from duewheel.rules.refusals import MalformedTaskId

TOKEN_BYTES = 8
SECOND_MAX = 99_999_999_999  # eleven digits: the year 5138
SHARD_MAX = 0xFFFF
SHARDS_MAX = 1_024  # of one second: a million writes a second, more than a table takes
LIST_PARTITIONS = 16

KEY_SLOTS = 16
_KEY_MARK = "key#"
PARKED_SLOTS = LIST_PARTITIONS
_PARKED_MARK = "parked#"
_ORDER_MARK = "order#"

Second = Annotated[int, Meta(ge=0, le=SECOND_MAX)]

_ID_VERSION = 1
_DIRECT_FLAG = 0x80
_CHECK_BYTES = 4
_ID_BYTES = 1 + 6 + 2 + TOKEN_BYTES + _CHECK_BYTES

_PLACE = re.compile(r"([0-9]{11})([./])([0-9]{3})#([A-Za-z0-9_-]{11})")
_NAME = re.compile(r"(0|[1-9][0-9]{0,4}):(.*)")
_DIRECT_PAGE = "d[0-9a-f]{16}"
_PAGE = re.compile(rf"(0|[1-9][0-9]{{0,8}})r{{0,99}}(sr{{0,99}})?|{_DIRECT_PAGE}sr{{0,99}}")
_SLOT = re.compile(r"[0-9]+\.(0|[1-9][0-9]{0,4})")


class Address(Struct, frozen=True, kw_only=True):
    """The position of one entry. `token` is the random part that makes it unique."""

    second: int
    ms: int
    token: str
    shard: int = 0
    direct: bool = False

    @property
    def instant_ms(self) -> int:
        return self.second * 1000 + self.ms

    @property
    def place(self) -> str:
        return f"{self.second:011d}{'/' if self.direct else '.'}{self.ms:03d}#{self.token}"

    @property
    def name(self) -> str:
        """How a home names its entry; with BUCKETS it gives slot and place."""
        return f"{self.shard}:{self.place}"

    @property
    def task_id(self) -> str:
        """The id of the task whose home this is."""
        body = (
            bytes([_ID_VERSION | (_DIRECT_FLAG if self.direct else 0)])
            + self.instant_ms.to_bytes(6, "big")
            + self.shard.to_bytes(2, "big")
            + _token_bytes(self.token)
        )
        return _text(body + _check(body))

    def slot(self, buckets: int) -> str:
        return slot(self.second, self.shard, buckets)


def address_at(
    instant_ms: int, random_bytes: bytes, *, shard: int = 0, direct: bool = False
) -> Address:
    if len(random_bytes) != TOKEN_BYTES:
        raise ValueError(f"an address needs {TOKEN_BYTES} random bytes")
    second, ms = divmod(instant_ms, 1000)
    if not 0 <= second <= SECOND_MAX:
        raise ValueError(f"the second {second} does not fit into a place")
    return Address(second=second, ms=ms, token=_text(random_bytes), shard=shard, direct=direct)


def address_named(name: str) -> Address:
    match = _NAME.fullmatch(name)
    if match is None:
        raise ValueError("this is no name of an entry")
    return address_from(int(match[1]), match[2])


def address_from(shard: int, place: str) -> Address:
    """Strict: a text that this service did not write is no address."""
    match = _PLACE.fullmatch(place)
    if match is None or shard > SHARD_MAX:
        raise ValueError("this is no place of an entry")
    second, mark, ms, token = match.groups()
    return Address(second=int(second), ms=int(ms), token=token, shard=shard, direct=mark == "/")


def address_of_task(task_id: str) -> Address:
    """The home that a task id points to; refuses what this service did not make."""
    try:
        raw = urlsafe_b64decode(task_id.encode("ascii"))
    except (Base64Error, ValueError) as error:
        raise MalformedTaskId("The task id does not decode.", "task_id") from error
    body, check = raw[:-_CHECK_BYTES], raw[-_CHECK_BYTES:]
    if len(raw) != _ID_BYTES or _text(raw) != task_id or check != _check(body):
        raise MalformedTaskId("The task id is damaged.", "task_id")
    if body[0] & ~_DIRECT_FLAG != _ID_VERSION:
        raise MalformedTaskId("The task id is of an unknown version.", "task_id")
    instant_ms = int.from_bytes(body[1:7], "big")
    if instant_ms // 1000 > SECOND_MAX:
        raise MalformedTaskId("The task id is of no second that the wheel has.", "task_id")
    return address_at(
        instant_ms,
        body[9 : 9 + TOKEN_BYTES],
        shard=int.from_bytes(body[7:9], "big"),
        direct=bool(body[0] & _DIRECT_FLAG),
    )


def task_id_at(slot: str, place: str) -> str | None:
    """None if no task can have this address."""
    try:
        return address_from(shard_of(slot), place).task_id
    except ValueError:
        return None


def shard_of(slot: str) -> int:
    match = _SLOT.fullmatch(slot)
    if match is None:
        raise ValueError("this is no slot of a second")
    return int(match[1])


def slot(second: int, shard: int, buckets: int) -> str:
    return f"{second % buckets}.{shard}"


def header_place(second: int) -> str:
    return f"{second:011d}#"


def lease_place(second: int, page: str) -> str:
    return f"{second:011d}~{page}"


def partition_of_business(biz_type: str, home: "Address") -> str:
    """The partition of the list index that has this task."""
    return f"{biz_type}#{list_partition(home)}"


def partitions_of_business(biz_type: str) -> tuple[str, ...]:
    return tuple(f"{biz_type}#{number}" for number in range(LIST_PARTITIONS))


def list_partition(home: "Address") -> int:
    return blake2s(home.token.encode(), digest_size=1).digest()[0] % LIST_PARTITIONS


def key_slot(biz_type: str, key: str) -> str:
    """The slot of a key's item; its sort key is the key itself."""
    return f"{_KEY_MARK}{biz_type}#{blake2s(key.encode(), digest_size=1).digest()[0] % KEY_SLOTS}"


def key_slots(biz_type: str) -> list[str]:
    return [f"{_KEY_MARK}{biz_type}#{number}" for number in range(KEY_SLOTS)]


def parked_slot(scope: str, home: "Address") -> str:
    """The slot of the parked item of a task. `scope`: the business or the flow key that is
    paused."""
    return _parked_slot(scope, list_partition(home))


def parked_slots(scope: str) -> list[str]:
    return [_parked_slot(scope, number) for number in range(PARKED_SLOTS)]


def _parked_slot(scope: str, number: int) -> str:
    biz_type, flow_key = parts_of(scope)
    slot = f"{_PARKED_MARK}{biz_type}#{number}"
    return slot if flow_key is None else f"{slot}#{flow_key}"


def parked_place(entry: "Address") -> str:
    """Of a task that fell due on this entry; the places sort by when they fell due."""
    return f"{entry.second:011d}.{entry.ms:03d}#{entry.token}"


def order_slot(biz_type: str, flow_key: str) -> str:
    """The slot of the order items of a flow key."""
    return f"{_ORDER_MARK}{biz_type}#{flow_key}"


def order_place(instant_ms: int, home: "Address") -> str:
    """In the order of the instants, then of the task ids."""
    return f"{instant_ms:014d}#{home.task_id}"


def last_order_place(instant_ms: int) -> str:
    """A bound behind all order items of this instant."""
    return f"{instant_ms:014d}~"


def home_of_order_place(place: str) -> "Address":
    return address_of_task(place[15:])


def instant_of_order_place(place: str) -> int:
    return int(place[:14])


def holds_seconds(slot: str) -> bool:
    """False for slots of keys, whose places may be any text, of parked tasks and order items."""
    return _SLOT.fullmatch(slot) is not None


def lease_page(place: str) -> str:
    """The page that a lease's place belongs to."""
    return place[12:]


def second_of(place: str) -> int:
    return int(place[:11])


def instant_of_place(place: str) -> int:
    """The instant of an entry; the start of its second if no entry can have this place."""
    match = _PLACE.fullmatch(place)
    return second_of(place) * 1000 + (int(match[3]) if match else 0)


def is_header(place: str) -> bool:
    return place[11:] == "#"


def is_direct(place: str) -> bool:
    return place[11:12] == "/"


def is_lease(place: str) -> bool:
    return place[11:12] == "~"


def entries_range(second: int) -> tuple[str, str]:
    """Bounds of the entries that slice reads see (direct ones are outside)."""
    return f"{second:011d}.", f"{second:011d}/"


def probe_range(second: int) -> tuple[str, str]:
    """Bounds of the header and the entries, which the scheduler reads."""
    return f"{second:011d}#", f"{second:011d}/"


def second_range(second: int) -> tuple[str, str]:
    """Bounds of everything that belongs to a second, which the sweep reads."""
    return f"{second:011d}#", f"{second:011d}\x7f"


def leases_range(second: int) -> tuple[str, str]:
    """Bounds of the leases of its pages."""
    return f"{second:011d}~", f"{second:011d}\x7f"


def is_among_entries_of(place: str, second: int) -> bool:
    """Whether it may bound a page of this second: a reader that stops there stays in the slice."""
    low, high = entries_range(second)
    return low <= place < high


def first_page() -> str:
    return "0"


def next_page(page: str) -> str:
    return str(int(page) + 1)


def is_page(page: str) -> bool:
    """Whether a message may name this page."""
    return _PAGE.fullmatch(page) is not None


def rest_page(page: str) -> str:
    """The page of the entries that `page` passed on when its Lambda ran out of time."""
    return f"{page}r"


def has_rest_page(page: str) -> bool:
    """False for a page at the end of the longest chain; the sweep rescues what it leaves."""
    return is_page(rest_page(page))


def slow_page(page: str) -> str:
    """The page of entries that `page` passed to the slow lane; what that passes on stays there."""
    return f"{page}s"


def is_slow_page(page: str) -> bool:
    return "s" in page


def is_passed_on(page: str) -> bool:
    """True if the page was made by passing entries on, by id."""
    return page[-1] in "rs"


def direct_page(names: Iterable[str]) -> str:
    """The page under which a direct message with these entries records what it passes on: the same
    each time the message comes. No message names this page."""
    digest = blake2s(" ".join(sorted(names)).encode(), digest_size=8)
    return f"d{digest.hexdigest()}"


def is_direct_page(page: str) -> bool:
    return re.fullmatch(_DIRECT_PAGE, page) is not None


def is_of_slice(page: str) -> bool:
    """False for a page of direct entries: another run may have these by their message."""
    return page[0] != "d"


def _text(raw: bytes) -> str:
    return urlsafe_b64encode(raw).decode("ascii").rstrip("=")


def _token_bytes(token: str) -> bytes:
    return urlsafe_b64decode(token + "=")


def _check(body: bytes) -> bytes:
    """Detects damaged and invented ids; it is not secret and gives no access."""
    return blake2s(body, digest_size=_CHECK_BYTES, person=b"duewheel").digest()
