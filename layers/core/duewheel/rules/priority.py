"""The priority of a task: which tasks are served first where there is no room for all."""

from enum import StrEnum
from typing import Annotated

from msgspec import Meta


class Priority(StrEnum):
    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"


PriorityField = Annotated[
    Priority,
    Meta(description="Which tasks are served first where there is no room for all."),
]
