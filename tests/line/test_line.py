"""The model of the line: with its rules nothing breaks, and each of them is needed."""

import pytest

from tests.line.scenarios import SCENARIOS, walked
from tests.line.world import ALL_ON, RULES
from tests.support.cases import each_case

QUICK, LONG, MOST = 40, 2_000, 60_000  # ways

# Where the rule is missed, and the first way on which it was.
MISSED_IN = {
    "admit": ("cancel while it waits", 79),
    "block_out": ("blocks", 71),
    "breaker_home": ("a blocked host", 76),
    "claim": ("blocks", 688),
    "closed_off": ("closed key", 0),
    "declare": ("two pages, no time", 2),
    "drop_held": ("two redrives", 95),
    "drop_if_written": ("two pages, faults", 212),
    "drop_same": ("a blocked host", 15),
    "elsewhere": ("in order, calm", 2),
    "fence": ("two pages, slow calls", 33),
    "head_again": ("two redrives", 1335),
    "idle_block": ("blocks, off and on", 314),
    "item_first": ("two pages, one death", 60),
    "keep_item": ("in order, calm", 3),
    "key_grant": ("keys with a limit under a limit", 5),
    "key_turn": ("both rates, faults", 4169),
    "lapse": ("two pages, one death", 29),
    "late_giveback": ("a blocked host", 0),
    "leave": ("two pages, one death", 46),
    "listed": ("keys in order under a limit", 0),
    "look_after": ("long work, calm", 9),
    "merge": ("a blocked host", 74),
    "move_tx": ("another key", 1),
    "named": ("another key", 30581),
    "not_early": ("in order and a limit, later", 0),
    "of_page": ("key order taken back", 193),
    "one_waker": ("rate, calm", 12),
    "open_again": ("paused without limits", 0),
    "overtakes": ("order there and back", 3688),
    "page_looks": ("mark", 968),
    "put_number": ("there and back", 4315),
    "relook": ("two pages, one death", 6),
    "room_wakes": ("long work, calm", 14),
    "server_reads": ("paused without limits", 11),
    "set_waiting": ("two pages, one death", 6),
    "settle_cond": ("blocks of a resumed business", 356),
    "sleep": ("long work, calm", 0),
    "take_skew": ("two pages, slow calls", 5387),
    "token": ("two pages, no time", 2),
    "turn_fence": ("rate", 46),
    "turn_first": ("rate, calm", 0),
    "unlist_asks": ("key is resumed", 7908),
    "unlist_look": ("keys with a limit under a limit", 4616),
    "unsure": ("cancel while it waits", 2986),
    "wake_on_end": ("paused without limits", 2),
    "wake_strong": ("key is paused and resumed", 0),
    "work_first": ("long work, calm", 2),
}


@each_case("name", SCENARIOS)
def test_no_promise_breaks_on_a_few_ways(name: str) -> None:
    assert [walked(name, ALL_ON, seed) for seed in range(QUICK)] == [None] * QUICK


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", SCENARIOS)
def test_no_promise_breaks_on_many_ways(name: str) -> None:
    for seed in range(LONG):
        assert walked(name, ALL_ON, seed) is None, f"seed {seed}"


def test_without_any_one_rule_a_promise_breaks() -> None:
    """On the way on which it was found, or on another one if the model has changed since."""
    assert MISSED_IN.keys() == RULES.keys()
    for rule, (name, first) in MISSED_IN.items():
        without = {**ALL_ON, rule: False}
        ways = range(first, first + MOST)
        assert any(walked(name, without, seed) for seed in ways), rule
