"""Wheel arithmetic: every comparison of instants that the protocols rest on."""

SKEW_MS = 2_000  # what the clocks of two functions may differ by
NEAR_MARGIN_MS = 5_000
DIRECT_LATE_MS = 30_000  # a direct message later than this is left to the sweep
DELAY_SECONDS_MAX = 900
WAIT_SECONDS_MAX = 5  # of a notifier for its slice to open: whoever is earlier comes again
_DATE_CUT_MS = 1_000  # AWS's replies carry their time in whole seconds


def placed_ms(instant_ms: int, now_ms: int) -> int:
    """A place is never earlier than the clock of whoever writes it."""
    return max(instant_ms, now_ms)


def not_behind_ms(now_ms: int, aws_ms: int) -> int:
    """The time by a clock that may be wrong, and no further behind AWS's than clocks may differ:
    what stands where only such a clock still looks, nobody would find any more."""
    return max(now_ms, aws_ms - SKEW_MS)


def not_ahead_ms(now_ms: int, aws_ms: int) -> int:
    """The same, and no further ahead."""
    return min(now_ms, aws_ms + _DATE_CUT_MS + SKEW_MS)


def is_near(second: int, now_ms: int, pointer_second: int, lead_ms: int, ahead_ms: int) -> bool:
    """Whether the second's slices may be handed over before an entry written now is in them.

    The time pointer runs ahead of the clock by the lead, and by as much as the profile lets it;
    what is nearer than that and a margin is marked direct and announced by a message of its own.
    Where the pointer stands further ahead than this profile lets it, another one did.
    """
    handed_over_ms = max(now_ms + ahead_ms, pointer_second * 1000)
    return second * 1000 <= handed_over_ms + lead_ms + NEAR_MARGIN_MS


def first_timely_ms(now_ms: int, lead_ms: int) -> int:
    """What is written for this instant within a second, by a right clock, is announced, or stands
    in its slice, before that opens."""
    return ((now_ms + lead_ms + NEAR_MARGIN_MS) // 1000 + 2) * 1000


def opens_ms(second: int, lead_ms: int) -> int:
    """The earliest instant at which a notifier reads this second's entries."""
    return second * 1000 - lead_ms


def cut_off_ms(next_ms: int, lead_ms: int) -> int:
    """From here on the task may have been read by a notifier whose clock is ahead."""
    return opens_ms(next_ms // 1000, lead_ms) - SKEW_MS


def delay_seconds(first_ms: int, now_ms: int, lead_ms: int) -> int:
    """How long the queue holds a message whose first instant this is: whole seconds, rather early
    than late."""
    return min(max(0, (first_ms - lead_ms - now_ms) // 1000), DELAY_SECONDS_MAX)


def is_direct_too_late(second: int, now_ms: int) -> bool:
    return now_ms - second * 1000 > DIRECT_LATE_MS


def direct_over_ms(second: int, notifier_lives_ms: int) -> int:
    """From here on no notifier works on a direct message of this second, however often it came."""
    return second * 1000 + DIRECT_LATE_MS + notifier_lives_ms + SKEW_MS


def lag_seconds(position: int, now_ms: int) -> int:
    """How far a pointer is behind the clock; one that stands ahead of it has no negative lag."""
    return max(0, now_ms // 1000 - position)


def dispatchable_second(now_ms: int, lead_ms: int, aws_ms: int) -> int:
    """The last second that may be dispatched now.

    `aws_ms` comes from a reply's Date header, which is cut to the second: hence the
    whole second of grace. A clock that runs fast cannot take the pointer along.
    """
    by_clock = (now_ms + lead_ms) // 1000
    by_aws = (aws_ms + _DATE_CUT_MS + SKEW_MS) // 1000
    return min(by_clock, by_aws)
