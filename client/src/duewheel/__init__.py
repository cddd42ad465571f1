"""The client of Duewheel: tasks handed over with an instant, called back at that instant."""

from duewheel import errors
from duewheel._async.client import AsyncDuewheel
from duewheel._sync.client import Duewheel
from duewheel.auth import BearerKey, SigV4
from duewheel.errors import DuewheelError, OutcomeUnknown, Problem, Unreachable
from duewheel.receiver import Delivery, NotGenuine, Receiver, StillAtWork
from duewheel.requests import NewTask
from duewheel.values import ApiKey, Attempt, Business, Change, Grant, Task, Timer
from duewheel.version import __version__

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
    "OutcomeUnknown",
    "Problem",
    "Receiver",
    "SigV4",
    "StillAtWork",
    "Task",
    "Timer",
    "Unreachable",
    "__version__",
    "errors",
]
