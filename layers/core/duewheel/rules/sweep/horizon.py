"""How far the sweep may go: a second and its dispatch must both be older than the lag."""

NOTES_KEPT = 8

Notes = tuple[tuple[int, int], ...]  # (position of the time pointer, instant), oldest first


def noted(notes: Notes, time_pointer: int, now_ms: int, lag_ms: int) -> Notes:
    """Add a look at the time pointer; of those older than the lag only the latest matters."""
    old = [note for note in notes if note[1] <= now_ms - lag_ms]
    young = [note for note in notes if note[1] > now_ms - lag_ms]
    kept = (*old[-1:], *young)
    # Far enough apart that those that are kept span the whole lag, however long it is.
    if young and now_ms - young[-1][1] < lag_ms / (NOTES_KEPT - 2):
        return kept
    return (*kept, (time_pointer, now_ms))


def sweepable_second(notes: Notes, now_ms: int, lag_ms: int) -> int | None:
    """The last second that may be swept; None when no look is old enough yet."""
    limit_ms = now_ms - lag_ms
    dispatched = [position for position, at_ms in notes if at_ms <= limit_ms]
    return min(max(dispatched), limit_ms // 1000) if dispatched else None
