"""The fixture `duewheel`: a private local stack for one test, with a frozen clock.

pytest loads this module with every run, so other modules are imported only when a test uses the
fixture.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from datetime import datetime

    from duewheel.testing.frozen_stack import FrozenStack


@pytest.fixture
def duewheel_starts_at() -> "datetime | None":
    """The stack's clock when a test begins: now, unless a module or a class overrides this
    fixture."""
    return None


@pytest.fixture
def duewheel(
    duewheel_starts_at: "datetime | None", monkeypatch: pytest.MonkeyPatch
) -> "Iterator[FrozenStack]":
    """A stack for this test alone. `Duewheel()` without arguments is a client of it as well, so
    that a test cannot affect another one."""
    from duewheel import whereabouts
    from duewheel.testing.frozen_stack import FrozenStack

    with FrozenStack(duewheel_starts_at) as stack:
        monkeypatch.setenv(whereabouts.URL, stack.url)
        monkeypatch.delenv(whereabouts.KEY, raising=False)
        yield stack
