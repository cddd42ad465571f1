"""What DynamoDB keeps refusing for being too much at once, as a caller is told."""

from collections.abc import Iterator
from contextlib import contextmanager

from duewheel.rules.refusals import Unavailable
from duewheel.stores.conditions import Throttled


@contextmanager
def unavailable_when_throttled() -> Iterator[None]:
    try:
        yield
    except Throttled as throttled:
        raise Unavailable("Too many requests at once. Try it again.") from throttled
