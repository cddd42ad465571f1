"""Wheel arithmetic: every comparison of instants that the protocols rest on."""

SKEW_MS = 2_000  # what the clocks of two functions may differ by
NEAR_MARGIN_MS = 5_000
DIRECT_LATE_MS = 30_000  # a direct message later than this is left to the sweep
DELAY_SECONDS_MAX = 900


def placed_ms(instant_ms: int, now_ms: int) -> int:
    """A place is never earlier than the clock of whoever writes it."""
    return max(instant_ms, now_ms)


def is_near(second: int, now_ms: int, pointer_second: int, lead_ms: int) -> bool:
    """Whether the second's slices may be read before an entry written now is in them.

    The time pointer runs ahead of the clock by the lead; what is nearer than that and
    a margin is marked direct and announced by a message of its own.
    """
    return second * 1000 <= _horizon_ms(now_ms, pointer_second, lead_ms)


def first_far_ms(now_ms: int, pointer_second: int, lead_ms: int) -> int:
    """What is written for this instant within a second is in its slice when that is read."""
    return (_horizon_ms(now_ms, pointer_second, lead_ms) // 1000 + 2) * 1000


def _horizon_ms(now_ms: int, pointer_second: int, lead_ms: int) -> int:
    return max(now_ms, pointer_second * 1000) + lead_ms + NEAR_MARGIN_MS


def opens_ms(second: int, lead_ms: int) -> int:
    """The earliest instant at which a notifier reads this second's entries."""
    return second * 1000 - lead_ms


def cut_off_ms(next_ms: int, lead_ms: int) -> int:
    """From here on the task may have been read by a notifier whose clock is ahead."""
    return opens_ms(next_ms // 1000, lead_ms) - SKEW_MS


def direct_delay_seconds(second: int, now_ms: int, lead_ms: int) -> int:
    """How long the queue holds a direct message: whole seconds, rather early than late."""
    return min(max(0, (opens_ms(second, lead_ms) - now_ms) // 1000), DELAY_SECONDS_MAX)


def is_direct_too_late(second: int, now_ms: int) -> bool:
    return now_ms - second * 1000 > DIRECT_LATE_MS


def direct_over_ms(second: int, notifier_lives_ms: int) -> int:
    """From here on no notifier works on a direct message of this second, however often it came."""
    return second * 1000 + DIRECT_LATE_MS + notifier_lives_ms + SKEW_MS


def dispatchable_second(now_ms: int, lead_ms: int, aws_ms: int) -> int:
    """The last second that may be dispatched now.

    `aws_ms` comes from a reply's Date header, which is cut to the second: hence the
    whole second of grace. A clock that runs fast cannot take the pointer along.
    """
    by_clock = (now_ms + lead_ms) // 1000
    by_aws = (aws_ms + 1_000 + SKEW_MS) // 1000
    return min(by_clock, by_aws)
