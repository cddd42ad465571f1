"""Timing: every comparison of instants that the protocols use."""

SKEW_MS = 2_000  # the allowed difference between the clocks of two functions
NEAR_MARGIN_MS = 5_000
RUN_EVERY_SECONDS = 60  # of the scheduler, by schedule, somewhere within the minute
# How long before it opens a slice may be dispatched: two runs may be nearly two minutes apart; the
# rest is for the run itself and for a late start.
AHEAD_SECONDS = 150
AHEAD_MS = AHEAD_SECONDS * 1000
# How long before its first task is due a message reaches a notifier that is running: for the queue,
# the lease and the read. If a notifier may have to be started, it is the lead.
WAKE_MS = 250
DIRECT_LATE_MS = 30_000  # a direct message later than this is left to the sweep
DELAY_SECONDS_MAX = 900
WAIT_SECONDS_MAX = 5  # of a notifier for its slice to open: an earlier message comes again
_DATE_CUT_MS = 1_000  # AWS's replies carry their time in whole seconds


def placed_ms(instant_ms: int, now_ms: int) -> int:
    """A place is never earlier than its writer's clock."""
    return max(instant_ms, now_ms)


def not_behind_ms(now_ms: int, aws_ms: int) -> int:
    """The time by a clock that may be wrong, and no further behind AWS's time than clocks may
    differ. No reader would find an entry further behind."""
    return max(now_ms, aws_ms - SKEW_MS)


def not_ahead_ms(now_ms: int, aws_ms: int) -> int:
    """The same, and no further ahead."""
    return min(now_ms, aws_ms + _DATE_CUT_MS + SKEW_MS)


def is_near(second: int, now_ms: int, lead_ms: int, ahead_ms: int = 0) -> bool:
    """Whether slices of the second may be dispatched before an entry written now is in them, by a
    scheduler that dispatches so far ahead. With 0: whether they may be read before. Such an entry
    is direct: a message of its own names it."""
    return second * 1000 <= now_ms + ahead_ms + lead_ms + NEAR_MARGIN_MS


def first_timely_ms(now_ms: int, lead_ms: int) -> int:
    """An entry written for this instant within a second, by a right clock, is announced, or is in
    its slice before that opens."""
    return ((now_ms + lead_ms + NEAR_MARGIN_MS) // 1000 + 2) * 1000


def opens_ms(second: int, lead_ms: int) -> int:
    """The earliest instant at which a notifier reads this second's entries."""
    return second * 1000 - lead_ms


def cut_off_ms(next_ms: int, lead_ms: int) -> int:
    """From here on a notifier whose clock is ahead may have read the task."""
    return opens_ms(next_ms // 1000, lead_ms) - SKEW_MS


def delay_seconds(wanted_ms: int, now_ms: int) -> int:
    """How long the queue delays a message that is to arrive at this instant: whole seconds, rounded
    down."""
    return min(max(0, (wanted_ms - now_ms) // 1000), DELAY_SECONDS_MAX)


def is_direct_too_late(second: int, now_ms: int) -> bool:
    return now_ms - second * 1000 > DIRECT_LATE_MS


def direct_over_ms(second: int, notifier_lives_ms: int) -> int:
    """From here on no notifier works on a direct message of this second, however often it was
    delivered."""
    return second * 1000 + DIRECT_LATE_MS + notifier_lives_ms + SKEW_MS


def lag_seconds(position: int, now_ms: int) -> int:
    """How far a pointer is behind the clock; 0 if it is ahead."""
    return max(0, now_ms // 1000 - position)


def dispatchable_second(now_ms: int, lead_ms: int, aws_ms: int) -> int:
    """The last second that may be dispatched now. `aws_ms` comes from the Date header of a reply,
    which is cut to the second: hence the whole second of grace. A clock that is ahead cannot move
    the pointer ahead of AWS's time."""
    by_clock = (now_ms + lead_ms) // 1000
    by_aws = (aws_ms + _DATE_CUT_MS + SKEW_MS) // 1000
    return min(by_clock, by_aws)
