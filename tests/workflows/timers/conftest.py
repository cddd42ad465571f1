"""Timers whose occurrences are named by step records, and timers whose occurrences are indexed."""

from collections.abc import Iterator

import pytest

from local.aws.emulator import Emulator
from local.aws.resources import Resources
from tests.support.bounds import quick_first
from tests.support.clock import ManualClock
from tests.support.world import World


@pytest.fixture(params=quick_first(["off", "on"], pytest.mark.exhaustive))
def run_index(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "on")


@pytest.fixture
def world(
    emulator: Emulator, resources: Resources, clock: ManualClock, run_index: bool
) -> Iterator[World]:
    world = World(emulator, resources, clock)
    world.wire(run_index=run_index)
    yield world
    world.close()
