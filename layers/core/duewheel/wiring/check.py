"""The check of a function before it gets traffic: build its parts, and let each that reads a table
or uses a queue do so once.

It makes no call, and changes nothing but what the first run would: a new wheel is laid out.
"""

from collections.abc import Iterable, Iterator, Mapping
from types import ModuleType
from typing import Any, Protocol, runtime_checkable

from duewheel.wiring.process import build_all, built


@runtime_checkable
class Reaching(Protocol):
    def reach(self) -> list[str]:
        """Read once, whatever is there. Returns the names of the tables or queues."""
        ...


def reached(wirings: Iterable[ModuleType]) -> list[str]:
    """The tables and queues that these modules' parts reach. Raises what stood in the way."""
    for module in wirings:
        build_all(module)
    parts = (part for part in _each(built()) if isinstance(part, Reaching))
    return sorted({name for part in parts for name in part.reach()})


def _each(parts: Iterable[Any]) -> Iterator[Any]:
    for part in parts:
        yield from part.values() if isinstance(part, Mapping) else [part]
