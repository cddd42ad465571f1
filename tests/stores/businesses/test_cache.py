"""The cache of businesses: the age of its records, and the reads that it makes."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from duewheel.rules.businesses.settings import Business, Defaults
from duewheel.stores.businesses import cache
from duewheel.stores.businesses.cache import BusinessCache
from tests.support.clock import ManualClock

DEFAULTS = Defaults(retention_days=30, timeout_seconds=10, timeout_seconds_max=30)


class Registry:
    """A registry that counts its reads."""

    def __init__(self) -> None:
        self.versions: dict[str, int] = {}
        self.reads: list[list[str]] = []
        self.goes_on = Event()
        self.goes_on.set()
        self.asked = Event()
        self.fails = False

    def read_many(self, biz_types: Iterable[str]) -> dict[str, Business]:
        names = list(biz_types)
        self.reads.append(names)
        found = {n: Business(n, DEFAULTS, version=self.versions.get(n, 0)) for n in names}
        self.asked.set()
        assert self.goes_on.wait(10)
        if self.fails:
            raise OSError("a cable is loose")
        return found


@pytest.fixture
def registry() -> Registry:
    return Registry()


@pytest.fixture
def known(registry: Registry, clock: ManualClock) -> BusinessCache:
    return BusinessCache(registry, clock)  # type: ignore[arg-type]


def test_settings_and_their_absence_are_cached_up_to_their_maximum_age(
    known: BusinessCache, registry: Registry, clock: ManualClock
) -> None:
    for _ in range(3):
        assert known.one("orders").version == 0
    registry.versions["orders"] = 1
    clock.advance_ms(4_999)
    assert known.one("orders").version == 0
    clock.advance_ms(1)
    assert known.one("orders").version == 1
    assert registry.reads == [["orders"]] * 2


def test_a_clock_that_is_set_back_does_not_extend_the_cache(
    known: BusinessCache, registry: Registry, clock: ManualClock
) -> None:
    known.one("orders")
    clock.set_ms(clock.now_ms() - 60_000)
    known.one("orders")
    assert len(registry.reads) == 2


def test_only_uncached_businesses_are_read(known: BusinessCache, registry: Registry) -> None:
    known.one("a")
    assert set(known.many(["a", "b", "c", "b"])) == {"a", "b", "c"}
    assert registry.reads == [["a"], ["b", "c"]]


def test_a_read_does_not_wait_for_the_read_of_another_thread(
    known: BusinessCache, registry: Registry
) -> None:
    registry.goes_on.clear()
    slow = registry.goes_on
    with ThreadPoolExecutor(1) as threads:
        reading = threads.submit(known.one, "orders")
        assert registry.asked.wait(10)
        registry.goes_on = Event()
        registry.goes_on.set()
        assert known.one("orders").version == 0
        assert not reading.done()
        slow.set()
        assert reading.result(10).version == 0
    assert len(registry.reads) == 2


def test_a_business_changed_during_a_read_is_read_again(
    known: BusinessCache, registry: Registry
) -> None:
    registry.goes_on.clear()
    with ThreadPoolExecutor(1) as threads:
        reading = threads.submit(known.one, "orders")
        assert registry.asked.wait(10)
        registry.versions["orders"] = 1
        known.forget("orders")
        registry.goes_on.set()
        assert reading.result(10).version == 0
    assert known.one("orders").version == 1


def test_a_failed_read_is_tried_again(known: BusinessCache, registry: Registry) -> None:
    registry.fails = True
    with pytest.raises(OSError, match="cable"):
        known.one("orders")
    registry.fails = False
    assert known.one("orders").version == 0


def test_the_size_of_the_cache_is_bounded(
    known: BusinessCache, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "KNOWN_MAX", 2)
    for name in ("a", "b", "c"):
        known.one(name)
    known.many(["b", "c"])
    known.one("a")
    assert registry.reads == [["a"], ["b"], ["c"], ["a"]]
