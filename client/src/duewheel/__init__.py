"""The client of Duewheel: it creates tasks, which are called back at their due instant.

A module is imported when one of its names is first used. The pytest plugin is loaded with every run
of a project's tests, and the import of httpx takes longer than some of these runs.
"""

from typing import TYPE_CHECKING

from duewheel.version import __version__

if TYPE_CHECKING:
    from duewheel import errors
    from duewheel._async.client import AsyncDuewheel
    from duewheel._async.receiver import AsyncReceiver
    from duewheel._async.seen import AsyncSeen
    from duewheel._sync.client import Duewheel
    from duewheel._sync.receiver import Receiver
    from duewheel._sync.seen import Seen
    from duewheel.auth import BearerKey, SigV4
    from duewheel.deliveries import Delivery, StopTask
    from duewheel.errors import DuewheelError, OutcomeUnknown, Problem, Unreachable
    from duewheel.requests import NewTask
    from duewheel.values import (
        ApiKey,
        Attempt,
        Business,
        Change,
        Grant,
        Operation,
        OutcomeNotice,
        Task,
        Timer,
    )
    from duewheel.verifying import NotGenuine, StillAtWork
else:
    from importlib import import_module

    HOMES = {
        "_async.client": ("AsyncDuewheel",),
        "_async.receiver": ("AsyncReceiver",),
        "_async.seen": ("AsyncSeen",),
        "_sync.client": ("Duewheel",),
        "_sync.receiver": ("Receiver",),
        "_sync.seen": ("Seen",),
        "auth": ("BearerKey", "SigV4"),
        "deliveries": ("Delivery", "StopTask"),
        "errors": ("DuewheelError", "OutcomeUnknown", "Problem", "Unreachable"),
        "requests": ("NewTask",),
        "values": (
            "ApiKey",
            "Attempt",
            "Business",
            "Change",
            "Grant",
            "Operation",
            "OutcomeNotice",
            "Task",
            "Timer",
        ),
        "verifying": ("NotGenuine", "StillAtWork"),
    }

    def __getattr__(name: str) -> object:
        if name == "errors":
            return import_module("duewheel.errors")
        for home, names in HOMES.items():
            if name in names:
                return getattr(import_module(f"duewheel.{home}"), name)
        raise AttributeError(f"module 'duewheel' has no attribute {name!r}")


__all__ = [
    "ApiKey",
    "AsyncDuewheel",
    "AsyncReceiver",
    "AsyncSeen",
    "Attempt",
    "BearerKey",
    "Business",
    "Change",
    "Delivery",
    "Duewheel",
    "DuewheelError",
    "Grant",
    "NewTask",
    "NotGenuine",
    "Operation",
    "OutcomeNotice",
    "OutcomeUnknown",
    "Problem",
    "Receiver",
    "Seen",
    "SigV4",
    "StillAtWork",
    "StopTask",
    "Task",
    "Timer",
    "Unreachable",
    "__version__",
    "errors",
]
