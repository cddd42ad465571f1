"""Names to addresses that may be called.

Whoever connects uses the addresses returned here and never resolves again, so an answer
that changes between check and connection changes nothing. One forbidden address among
several refuses the name: which of them a later answer puts first is the far side's choice.
"""

import asyncio
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address

from duewheel.rules.egress import IpNetwork, is_reachable

CACHE_SECONDS = 5.0
_HOSTS_CACHED_MAX = 1_000
# Lookups block a thread each; slow name servers of a few hosts must not hold up the others.
_LOOKUPS_AT_ONCE_MAX = 32


class RefusedAddress(Exception):
    """The host is, or leads to, an address that callbacks may not reach."""


class Resolver:
    def __init__(self, allowed: Sequence[IpNetwork]) -> None:
        self._allowed = allowed
        self._threads = ThreadPoolExecutor(_LOOKUPS_AT_ONCE_MAX, "resolver")
        self._lookups: dict[str, asyncio.Task[tuple[str, ...]]] = {}
        self._cache: dict[str, tuple[float, tuple[str, ...]]] = {}

    async def addresses_of(self, host: str) -> tuple[str, ...]:
        """Checked addresses; raises RefusedAddress, or OSError when the name does not resolve."""
        expires, addresses = self._cache.get(host, (0.0, ()))
        if asyncio.get_running_loop().time() < expires:
            return addresses
        if _is_literal(host):
            return self._checked(host, (host,))
        lookup = self._lookups.get(host)
        if lookup is None:
            lookup = asyncio.create_task(self._look_up(host))
            self._lookups[host] = lookup
            lookup.add_done_callback(lambda done: self._forget(host, done))
        # Shielded: others may wait for the same lookup, and a timeout here is not theirs.
        return await asyncio.shield(lookup)

    async def close(self) -> None:
        lookups = tuple(self._lookups.values())
        for lookup in lookups:
            lookup.cancel()
        await asyncio.gather(*lookups, return_exceptions=True)
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _look_up(self, host: str) -> tuple[str, ...]:
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(
            self._threads, lambda: socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        )
        # A scoped address keeps its %zone, which no check lets through.
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
            done.exception()  # whoever still waits gets it; if nobody does, it is no news


def _is_literal(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
