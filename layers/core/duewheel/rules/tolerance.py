"""Tolerance: how much later than its due instant a task may be called, and the shared second that
it gets.

Tasks of a business that share a second share its message, its lease and its reads. Shared seconds
are a grid, which the tolerance chooses. Each grid contains the coarser ones, so tasks of different
tolerances share seconds, too. A hash of the business shifts its grid, so that the businesses do not
all fall due on the full minute.
"""

from hashlib import blake2s
from typing import Annotated

from msgspec import Meta, Struct

GRIDS_SECONDS = (1, 5, 10, 30, 60, 300, 900, 3_600)  # each divides the next one
TOLERANCE_SECONDS_MAX = GRIDS_SECONDS[-1]

ToleranceSeconds = Annotated[
    int,
    Meta(
        ge=0,
        le=TOLERANCE_SECONDS_MAX,
        description="How much later than its due instant it may be called, to share a second with "
        "others of its business.",
    ),
]


class Window(Struct, frozen=True):
    """When a task may fall due: from its due instant on, for this long. None: as long as its
    business says."""

    due_ms: int
    biz_type: str = ""
    tolerance_seconds: int | None = 0


def shared_ms(window: Window, tolerance_seconds: int) -> int:
    """The first shared second that is not before the due instant: at most the tolerance later.
    Without tolerance the due instant itself."""
    if not tolerance_seconds:
        return window.due_ms
    return _on_grid_ms(window, _grid_seconds(tolerance_seconds))


def spread_ms(window: Window, tolerance_seconds: int, shards: int, random_bytes: bytes) -> int:
    """One of the seconds within the tolerance, by a hash: of the coarsest grid that has as many as
    the shared second has shards. So about as many seconds share its load."""
    step = max((grid for grid in GRIDS_SECONDS if grid * shards <= tolerance_seconds), default=1)
    first_ms = _on_grid_ms(window, step)
    last_ms = window.due_ms + tolerance_seconds * 1000
    seconds = (last_ms - first_ms) // (step * 1000) + 1
    return first_ms + _hash(random_bytes, b"spread") % seconds * step * 1000


def _grid_seconds(tolerance_seconds: int) -> int:
    return max(grid for grid in GRIDS_SECONDS if grid <= tolerance_seconds)


def _on_grid_ms(window: Window, step: int) -> int:
    phase = _hash(window.biz_type.encode(), b"phase") % TOLERANCE_SECONDS_MAX
    return window.due_ms + (phase * 1000 - window.due_ms) % (step * 1000)


def _hash(value: bytes, person: bytes) -> int:
    return int.from_bytes(blake2s(value, digest_size=8, person=person).digest(), "big")
