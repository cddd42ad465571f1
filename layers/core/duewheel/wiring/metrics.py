"""At the end of each run its counts become lines of its log."""

import logging
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from duewheel import __version__
from duewheel.log import logger
from duewheel.metrics import counts
from duewheel.rules.embedded_metrics import Source, metric_lines
from duewheel.wiring import process

R = TypeVar("R")


def tells_metrics(handler: Callable[[Any, Any], R]) -> Callable[[Any, Any], R]:
    """The same handler; it writes the counts however it ends."""

    @wraps(handler)
    def telling(event: Any, context: Any) -> R:
        try:
            return handler(event, context)
        finally:
            tell_metrics()

    return telling


def tell_metrics() -> None:
    counted = counts.take()
    if not counted.counts and not counted.values:
        return  # without reading the settings, which may be invalid
    settings = process.settings()
    if not settings.metrics:
        return
    source = Source(settings.stack_name, __version__, logging.getLevelName(logger.log_level))
    for line in metric_lines(counted, source, process.clock().now_ms()):
        process.write_line(line)
