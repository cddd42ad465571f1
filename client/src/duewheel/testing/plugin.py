"""The fixture `duewheel`: a private local stack for one test, its clock standing still.

pytest loads this module with every run, so nothing is imported before a test asks for the fixture.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from datetime import datetime

    from duewheel.testing.frozen_stack import FrozenStack


@pytest.fixture
def duewheel_starts_at() -> "datetime | None":
    """When a test begins by the stack's clock; now, until a module or a class says otherwise by
    a fixture of this name."""
    return None


@pytest.fixture
def duewheel(
    duewheel_starts_at: "datetime | None", monkeypatch: pytest.MonkeyPatch
) -> "Iterator[FrozenStack]":
    """A stack of this test's own. `Duewheel()` without arguments is a client of it as well, so
    that a test cannot affect another one."""
    from duewheel import whereabouts
    from duewheel.testing.frozen_stack import FrozenStack

    with FrozenStack(duewheel_starts_at) as stack:
        monkeypatch.setenv(whereabouts.URL, stack.url)
        monkeypatch.delenv(whereabouts.KEY, raising=False)
        yield stack
