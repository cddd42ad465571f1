"""The two lanes in which pages are delivered."""

from enum import StrEnum


class Lane(StrEnum):
    """`SLOW` has a queue and notifiers of its own, for those whose calls hold pages up."""

    MAIN = "main"
    SLOW = "slow"
