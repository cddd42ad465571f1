"""Businesses whose flow keys are in order."""

from duewheel.rules.businesses.flow import Flow, FlowLimits
from duewheel.stores.businesses.cache import KEPT_MS
from tests.support.world import World

IN_ORDER = Flow(default=FlowLimits(in_order=True))


def keep_in_order(world: World) -> None:
    world.configured("orders", flow=IN_ORDER)


def leave_order(world: World) -> None:
    world.configured("orders", flow=None)


def switch_to_order(world: World) -> None:
    """When no process has the settings of before any more."""
    keep_in_order(world)
    world.clock.advance_ms(KEPT_MS)
