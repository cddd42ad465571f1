"""The client of Duewheel: it creates tasks, which are called back at their due instant.

A module is imported when one of its names is first used. The pytest plugin is loaded with every run
of a project's tests, and the import of httpx takes longer than some of these runs.
"""

from typing import TYPE_CHECKING

from duewheel.version import __version__

if TYPE_CHECKING:
    from duewheel import errors
    from duewheel._async.client import AsyncDuewheel
    from duewheel._sync.client import Duewheel
    from duewheel.auth import BearerKey, SigV4
    from duewheel.deliveries import Delivery, StopTask
    from duewheel.errors import DuewheelError, OutcomeUnknown, Problem, Unreachable
    from duewheel.receiver import NotGenuine, Receiver, StillAtWork
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
else:
    from importlib import import_module

    HOMES = {
        "_async.client": ("AsyncDuewheel",),
        "_sync.client": ("Duewheel",),
        "auth": ("BearerKey", "SigV4"),
        "deliveries": ("Delivery", "StopTask"),
        "errors": ("DuewheelError", "OutcomeUnknown", "Problem", "Unreachable"),
        "receiver": ("NotGenuine", "Receiver", "StillAtWork"),
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
    "SigV4",
    "StillAtWork",
    "StopTask",
    "Task",
    "Timer",
    "Unreachable",
    "__version__",
    "errors",
]
