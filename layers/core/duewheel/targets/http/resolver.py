"""Resolve names to addresses that may be called.

The connection uses the addresses returned here and is not resolved again, so an answer that changes
between check and connection changes nothing. One forbidden address among several refuses the name:
the far side decides which of them comes first.

A look-up holds a thread until the name servers answer, even if its call was given up. So each
business has a few threads, and names that hang leave those of the others free.
"""

import asyncio
import socket
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address

from duewheel.rules.callbacks.egress import IpNetwork, is_reachable

CACHE_SECONDS = 5.0
_HOSTS_CACHED_MAX = 1_000
LOOKUPS_OF_A_BUSINESS_MAX = 4
LOOKUPS_MAX = 128  # of 32 businesses, all of whose names hang
BEGIN_SECONDS_MAX = 1.0  # that a call waits for its look-up to begin


class LookupNotBegun(Exception):
    """The business, or this process, has the maximum of running look-ups."""


class RefusedAddress(Exception):
    """The host is, or leads to, an address that callbacks may not reach."""


class Resolver:
    def __init__(self, allowed: Sequence[IpNetwork]) -> None:
        self._allowed = allowed
        self._threads = ThreadPoolExecutor(LOOKUPS_MAX, "resolver")
        self._under_way: Counter[str] = Counter()  # by business
        self._ended = asyncio.Condition()
        self._lookups: dict[str, asyncio.Task[tuple[str, ...]]] = {}
        self._cache: dict[str, tuple[float, tuple[str, ...]]] = {}

    async def addresses_of(
        self, host: str, biz_type: str, begin_seconds: float = BEGIN_SECONDS_MAX
    ) -> tuple[str, ...]:
        """The checked addresses of a host. Raises RefusedAddress; OSError if the name does not
        resolve; LookupNotBegun if the look-up does not begin within this time. `biz_type`: of the
        task."""
        expires, addresses = self._cache.get(host, (0.0, ()))
        if asyncio.get_running_loop().time() < expires:
            return addresses
        if _is_literal(host):
            return self._checked(host, (host,))
        lookup = self._lookups.get(host) or await self._begun(host, biz_type, begin_seconds)
        # Shielded: others may wait for the same lookup, and a timeout here is not theirs.
        return await asyncio.shield(lookup)

    async def close(self) -> None:
        lookups = tuple(self._lookups.values())
        for lookup in lookups:
            lookup.cancel()
        await asyncio.gather(*lookups, return_exceptions=True)
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _begun(
        self, host: str, biz_type: str, seconds: float
    ) -> asyncio.Task[tuple[str, ...]]:
        """The look-up of this host, which another call may have begun meanwhile."""

        def may_begin() -> bool:
            is_free = self._under_way[biz_type] < LOOKUPS_OF_A_BUSINESS_MAX
            return host in self._lookups or (is_free and self._under_way.total() < LOOKUPS_MAX)

        try:
            async with asyncio.timeout(seconds), self._ended:
                await self._ended.wait_for(may_begin)
                if (lookup := self._lookups.get(host)) is None:
                    self._under_way[biz_type] += 1
                    lookup = asyncio.create_task(self._look_up(host, biz_type))
                    self._lookups[host] = lookup
                    lookup.add_done_callback(lambda done: self._forget(host, done))
        except TimeoutError:
            raise LookupNotBegun from None
        return lookup

    async def _look_up(self, host: str, biz_type: str) -> tuple[str, ...]:
        loop = asyncio.get_running_loop()
        try:
            found = await loop.run_in_executor(
                self._threads, lambda: socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            )
        finally:
            self._under_way[biz_type] -= 1
            if not self._under_way[biz_type]:
                del self._under_way[biz_type]
            async with self._ended:
                self._ended.notify_all()
        # A scoped address keeps its %zone, which the check refuses.
        return self._checked(host, tuple(dict.fromkeys(str(answer[4][0]) for answer in found)))

    def _checked(self, host: str, addresses: tuple[str, ...]) -> tuple[str, ...]:
        if not all(is_reachable(address, self._allowed) for address in addresses):
            raise RefusedAddress
        if len(self._cache) >= _HOSTS_CACHED_MAX:
            self._cache.clear()
        expires = asyncio.get_running_loop().time() + CACHE_SECONDS
        self._cache[host] = (expires, addresses)
        return addresses

    def _forget(self, host: str, done: asyncio.Task[tuple[str, ...]]) -> None:
        if self._lookups.get(host) is done:
            del self._lookups[host]
        if not done.cancelled():
            done.exception()  # waiting calls get it; if there are none it is ignored


def _is_literal(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
