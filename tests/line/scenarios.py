"""Small worlds in which every rule of the line is needed by some way through them."""

from collections.abc import Mapping
from functools import partial
from typing import Any
from unittest.mock import patch

from duewheel.rules.line import record
from duewheel.rules.wheel.timing import SKEW_MS
from tests.line.explorer import Scenario, Way, walk
from tests.line.others import Block, Caller, Lapse
from tests.line.page import Page
from tests.line.server import Server
from tests.line.world import BUSINESS, World

Tasks = Mapping[str, Mapping[str, Any]]

ONE: Tasks = {"a": {}}
AB: Tasks = {"a": {}, "b": {}}
ABC: Tasks = {**AB, "c": {}}
ALL = {"kill": 1, "lost": 1, "late": 1, "lose": 1, "dup": 1}
LIMIT_1 = {BUSINESS: {"in_flight": 1}}
LIMIT_2 = {BUSINESS: {"in_flight": 2}}
RATE = {BUSINESS: {"interval_ms": 6_000}}
ORDER = {BUSINESS: {"in_order": True}}
KEYS = {BUSINESS: {"in_flight": 1}, "S/k": {"in_order": True}}
KEY_LIMITS = {BUSINESS: {"in_flight": 2}, "S/k": {"in_flight": 1}}


_build = partial(
    World.of,
    begins={"page": Page, "serve": Server, "block": Block, "lapse": Lapse, "api": Caller},
)


def _of(
    tasks: Tasks, pages: tuple[tuple[int, str], ...], scopes: Mapping[str, Any], **more: Any
) -> Scenario:
    of_pages = tuple((at, tuple(names)) for at, names in pages)
    return Scenario(_build, tasks, of_pages, scopes, **more)


def waiting(tasks: Tasks) -> Tasks:
    return {name: {**values, "waits": True} for name, values in tasks.items()}


SCENARIOS: Mapping[str, Scenario] = {
    "two pages": _of(AB, ((0, "a"), (0, "b")), LIMIT_1),
    "two pages, faults": _of(AB, ((0, "a"), (0, "b")), LIMIT_1, faults=ALL),
    "two pages, no time": _of(
        AB, ((0, "a"), (0, "b")), LIMIT_1, freezes=False, until_seconds=8, serves_max=12
    ),
    "two pages, one death": _of(
        AB, ((0, "a"), (0, "b")), LIMIT_1, freezes=False, faults={"kill": 1}, until_seconds=4
    ),
    "two pages, slow calls": _of(AB, ((0, "a"), (0, "b")), LIMIT_1, is_slow=True, until_seconds=12),
    "two wait, slow calls": _of(
        waiting(AB),
        ((0, "a"), (0, "b")),
        LIMIT_1,
        api=(("raise_limit", BUSINESS),),
        is_slow=True,
        until_seconds=16,
        serves_max=99,
        faults={"dup": 1},
    ),
    "three pages, limit 2, faults": _of(ABC, ((0, "a"), (0, "b"), (0, "c")), LIMIT_2, faults=ALL),
    "page of three, cancel": _of(
        ABC, ((0, "abc"),), LIMIT_1, api=(("cancel", "c"), ("cancel", "b")), faults=ALL
    ),
    "long work": _of(
        AB,
        ((0, "a"), (0, "b")),
        LIMIT_1,
        answers={"a": "202"},
        api=(("report", "a"),),
        faults={"kill": 1, "dup": 1},
    ),
    "long work, calm": _of(
        ABC,
        ((0, "a"), (1, "b"), (2, "c")),
        LIMIT_1,
        answers={"a": "202"},
        freezes=False,
        until_seconds=10,
        serves_max=12,
    ),
    "paused": _of(
        AB,
        ((0, "a"), (0, "b")),
        {BUSINESS: {"in_flight": 1, "is_open": False}},
        api=(("resume", BUSINESS),),
        faults={"dup": 1},
    ),
    "paused without limits": _of(
        AB,
        ((0, "ab"),),
        {BUSINESS: {"is_open": False}},
        api=(("resume", BUSINESS),),
        faults=ALL,
    ),
    "in order": _of({"a": {}, "b": {"due": 1}}, ((1, "b"), (0, "a")), ORDER, answers={"a": "fail"}),
    "in order, faults": _of({"a": {}, "b": {"due": 1}}, ((1, "b"), (0, "a")), ORDER, faults=ALL),
    "in order, calm": _of(
        {"a": {}, "b": {"due": 1}, "c": {"due": 2}},
        ((2, "c"), (1, "b"), (0, "a")),
        ORDER,
        freezes=False,
        answers={"a": "fail"},
        serves_max=12,
    ),
    "in order and a limit, later": _of(
        {"a": {"due": 6, "waits": True}, "b": {"due": 7, "waits": True}},
        ((7, "b"), (6, "a")),
        {BUSINESS: {"in_order": True, "in_flight": 1}},
        faults={"dup": 1},
        until_seconds=16,
    ),
    "another key": _of(
        {"a": {}, "b": {"due": 5}, "c": {"scope": "T"}},
        ((0, "a"), (5, "b"), (0, "c")),
        {BUSINESS: {"in_order": True}, "T": {"in_order": True}},
        api=(("rekey", "b", "T"),),
        faults={"kill": 1, "lost": 1},
    ),
    "cancel while it waits": _of(
        waiting(ONE),
        ((0, "a"),),
        LIMIT_1,
        api=(("cancel", "a"),),
        faults={"lost": 1, "late": 1},
        until_seconds=18,
    ),
    "cancel after a lapse": _of(
        waiting(ONE), ((0, "a"),), LIMIT_1, api=(("cancel", "a"),), until_seconds=20
    ),
    "rate": _of(
        ABC,
        ((0, "ab"), (1, "c")),
        RATE,
        faults={"kill": 1, "dup": 1},
        until_seconds=24,
        serves_max=40,
    ),
    "rate, calm": _of(
        ABC, ((0, "ab"), (1, "c")), RATE, freezes=False, until_seconds=24, serves_max=12
    ),
    "calm": _of({**ABC, "d": {}}, ((0, "ab"), (0, "c"), (1, "d")), LIMIT_2, freezes=False),
    "keys in order under a limit": _of(
        {"a": {"scope": "S/k"}, "b": {"scope": "S/k", "due": 1}, "c": {}},
        ((0, "a"), (1, "b"), (0, "c")),
        KEYS,
        until_seconds=20,
        serves_max=40,
    ),
    "keys in order under a limit, faults": _of(
        {"a": {"scope": "S/k"}, "b": {"scope": "S/k", "due": 1}, "c": {}},
        ((0, "a"), (1, "b"), (0, "c")),
        KEYS,
        faults=ALL,
        until_seconds=20,
        serves_max=40,
    ),
    "keys with a limit under a limit": _of(
        {"a": {"scope": "S/k"}, "b": {"scope": "S/k"}, "c": {}},
        ((0, "a"), (0, "b"), (0, "c")),
        KEY_LIMITS,
        faults=ALL,
        until_seconds=20,
        serves_max=40,
    ),
    "keys with a limit under a limit, calm": _of(
        {"a": {"scope": "S/k"}, "b": {"scope": "S/k"}, "c": {}, "d": {}},
        ((0, "ab"), (0, "c"), (1, "d")),
        KEY_LIMITS,
        freezes=False,
        until_seconds=20,
    ),
    "blocks": _of(
        waiting(ABC),
        ((0, "abc"),),
        LIMIT_2,
        has_blocks=True,
        faults=ALL,
        until_seconds=20,
        serves_max=40,
        side_by_side=4,
    ),
    "blocks of a resumed business": _of(
        {**waiting(ABC), "d": {"waits": True}},
        ((0, "abcd"),),
        {BUSINESS: {"is_open": False}},
        has_blocks=True,
        api=(("resume", BUSINESS), ("cancel", "a")),
        faults=ALL,
        until_seconds=20,
        serves_max=40,
        side_by_side=4,
    ),
    "a blocked host": _of(
        {"a": {"blocked": 5, "waits": True}, "b": {"waits": True}},
        ((0, "ab"),),
        LIMIT_1,
        faults=ALL,
        until_seconds=20,
        serves_max=40,
    ),
    "closed key": _of(
        {"a": {"scope": "S/k"}, "c": {}},
        ((0, "c"), (0, "a")),
        {BUSINESS: {"in_flight": 1}, "S/k": {"in_flight": 1, "is_open": False}},
        freezes=False,
        until_seconds=14,
        serves_max=15,
    ),
    "key is resumed": _of(
        {"a": {"scope": "S/k"}, "b": {"scope": "S/k"}, "c": {}},
        ((0, "c"), (0, "a"), (1, "b")),
        {BUSINESS: {"in_flight": 1}, "S/k": {"in_flight": 1, "is_open": False}},
        api=(("resume", "S/k"),),
        until_seconds=14,
        serves_max=999,
    ),
    "key is paused and resumed": _of(
        {"a": {"scope": "S/k"}, "b": {"scope": "S/k"}, "c": {}},
        ((0, "c"), (0, "a"), (1, "b")),
        {BUSINESS: {"in_flight": 1}, "S/k": {"in_flight": 1}},
        api=(("pause_resume", "S/k"),),
        until_seconds=14,
        serves_max=999,
    ),
    "there and back": _of(
        {"a": {"waits": True}, "b": {"due": 1, "waits": True}, "c": {"scope": "T"}},
        ((0, "a"), (1, "b"), (0, "c")),
        {BUSINESS: {"in_flight": 1}, "T": {"in_flight": 1}},
        api=(("there_and_back", "a", "T", BUSINESS),),
        until_seconds=14,
        serves_max=99,
    ),
    "order there and back": _of(
        {"a": {"waits": True}, "b": {"due": 1, "waits": True}, "c": {"scope": "T"}},
        ((0, "a"), (1, "b"), (0, "c")),
        {BUSINESS: {"in_order": True}, "T": {"in_order": True}},
        api=(("there_and_back", "a", "T", BUSINESS),),
        until_seconds=14,
        serves_max=99,
    ),
    "order and limit 2, another key": _of(
        {"a": {"waits": True}, "b": {"scope": "T"}, "c": {"scope": "T", "due": 1}},
        ((0, "a"), (0, "b"), (1, "c")),
        {BUSINESS: {"in_order": True}, "T": {"in_order": True, "in_flight": 2}},
        api=(("rekey", "a", "T"),),
        until_seconds=14,
        serves_max=99,
    ),
    "there, limit": _of(
        {"a": {"waits": True}, "b": {"scope": "T"}},
        ((0, "a"), (0, "b")),
        {BUSINESS: {"in_flight": 1, "is_open": False}, "T": {"in_flight": 1}},
        api=(("there_and_back", "a", "T", BUSINESS), ("resume", BUSINESS)),
        until_seconds=14,
        serves_max=99,
    ),
    "rekey under a limit": _of(
        {"a": {"scope": "S/k", "waits": True}, "b": {"scope": "S/k", "waits": True}, "c": {}},
        ((0, "a"), (0, "b"), (0, "c")),
        {BUSINESS: {"in_flight": 1}, "S/k": {"in_order": True}, "S/l": {"in_order": True}},
        api=(("rekey", "b", "S/l"),),
        until_seconds=20,
        serves_max=99,
    ),
    "rekey under a limit, faults": _of(
        {"a": {"scope": "S/k", "waits": True}, "b": {"scope": "S/k", "waits": True}, "c": {}},
        ((0, "a"), (0, "b"), (0, "c")),
        {BUSINESS: {"in_flight": 1}, "S/k": {"in_order": True}, "S/l": {"in_flight": 1}},
        api=(("rekey", "b", "S/l"),),
        faults=ALL,
        until_seconds=20,
        serves_max=99,
    ),
    "both rates": _of(
        {"a": {"scope": "S/k"}, "b": {"scope": "S/k"}, "c": {}},
        ((0, "ab"), (0, "c")),
        {BUSINESS: {"interval_ms": 5_000}, "S/k": {"interval_ms": 7_000}},
        until_seconds=24,
        serves_max=60,
    ),
    "both rates, faults": _of(
        {"a": {"scope": "S/k"}, "b": {"scope": "S/k"}, "c": {}},
        ((0, "ab"), (0, "c")),
        {BUSINESS: {"interval_ms": 5_000}, "S/k": {"interval_ms": 7_000}},
        faults=ALL,
        until_seconds=24,
        serves_max=60,
    ),
    "rate and limit": _of(
        {"a": {"scope": "S/k"}, "b": {"scope": "S/k"}, "c": {}},
        ((0, "ab"), (0, "c")),
        {BUSINESS: {"in_flight": 1}, "S/k": {"interval_ms": 7_000}},
        faults={"dup": 1, "kill": 1},
        until_seconds=24,
        serves_max=60,
    ),
    "limit off and on": _of(
        {**waiting(ABC)},
        ((0, "abc"),),
        {BUSINESS: {"in_flight": 1}},
        api=(("off_and_on", BUSINESS),),
        is_slow=True,
        until_seconds=20,
        serves_max=99,
    ),
    "business limit off": _of(
        {"a": {"scope": "S/k"}, "b": {"scope": "S/k", "due": 1}, "c": {}},
        ((0, "a"), (1, "b"), (0, "c")),
        KEYS,
        api=(("unlimit", BUSINESS),),
        until_seconds=20,
        serves_max=99,
    ),
    "key limits, business off": _of(
        {"a": {"scope": "S/k"}, "b": {"scope": "S/k"}, "c": {}},
        ((0, "a"), (0, "b"), (0, "c")),
        {BUSINESS: {"in_flight": 1}, "S/k": {"in_flight": 1}},
        api=(("unlimit", BUSINESS),),
        until_seconds=20,
        serves_max=99,
    ),
    "key order taken back": _of(
        {"a": {}, "b": {"due": 3}},
        ((0, "a"), (3, "b")),
        ORDER,
        api=(("unorder", BUSINESS),),
        until_seconds=20,
        serves_max=99,
    ),
    "blocks, off and on": _of(
        {**waiting(ABC), "d": {"waits": True}},
        ((0, "abcd"),),
        LIMIT_2,
        has_blocks=True,
        api=(("off_and_on", BUSINESS),),
        faults=ALL,
        until_seconds=22,
        serves_max=99,
        side_by_side=4,
    ),
    "blocks, paused": _of(
        {**waiting(ABC), "d": {"waits": True}},
        ((0, "abcd"),),
        {**LIMIT_2, "T": {"in_flight": 1}},
        has_blocks=True,
        api=(("pause_resume", BUSINESS), ("rekey", "a", "T")),
        faults=ALL,
        until_seconds=22,
        serves_max=99,
        side_by_side=4,
    ),
    "long work, key under limit": _of(
        {"a": {"scope": "S/k"}, "b": {"scope": "S/k"}, "c": {}},
        ((0, "a"), (0, "b"), (0, "c")),
        {BUSINESS: {"in_flight": 2}, "S/k": {"in_flight": 1}},
        answers={"a": "202"},
        api=(("report", "a"),),
        until_seconds=24,
        serves_max=99,
    ),
    "long work, order under limit": _of(
        {"a": {"scope": "S/k"}, "b": {"scope": "S/k"}, "c": {}},
        ((0, "a"), (0, "b"), (0, "c")),
        KEYS,
        answers={"a": "202"},
        api=(("report", "a"),),
        until_seconds=24,
        serves_max=99,
    ),
    "order, limit 2, slow": _of(
        {"a": {"waits": True}, "b": {"scope": "T"}, "c": {"scope": "T", "due": 1}},
        ((0, "a"), (0, "b"), (1, "c")),
        {BUSINESS: {"in_order": True, "is_open": False}, "T": {"in_order": True, "in_flight": 2}},
        api=(("rekey", "a", "T"),),
        is_slow=True,
        until_seconds=14,
        serves_max=99,
    ),
    "order, limit 1, slow": _of(
        {"a": {"waits": True}, "b": {"scope": "T"}, "c": {"scope": "T", "due": 1}},
        ((0, "a"), (0, "b"), (1, "c")),
        {BUSINESS: {"in_order": True, "is_open": False}, "T": {"in_order": True, "in_flight": 1}},
        api=(("rekey", "a", "T"),),
        is_slow=True,
        until_seconds=14,
        serves_max=99,
    ),
    "order under limit 2, slow": _of(
        {"a": {"scope": "S/l", "waits": True}, "b": {"scope": "S/k"}, "c": {}},
        ((0, "a"), (0, "b"), (0, "c")),
        {
            BUSINESS: {"in_flight": 2},
            "S/k": {"in_order": True},
            "S/l": {"in_order": True, "is_open": False},
        },
        api=(("rekey", "a", "S/k"),),
        is_slow=True,
        until_seconds=18,
        serves_max=99,
    ),
    "unlimit, kill": _of(
        {"a": {"scope": "S/k"}, "b": {"scope": "S/k"}, "c": {}},
        ((0, "a"), (0, "b"), (0, "c")),
        {BUSINESS: {"in_flight": 1}, "S/k": {"in_flight": 1}},
        api=(("off_and_on", BUSINESS),),
        faults=ALL,
        until_seconds=20,
        serves_max=99,
    ),
    "mark": _of(
        AB,
        ((0, "a"), (0, "b")),
        LIMIT_1,
        api=(("unmark", BUSINESS),),
        faults={"kill": 1},
        until_seconds=14,
        serves_max=99,
    ),
    "order gets a limit": _of(
        {"a": {}, "b": {"due": 3}},
        ((0, "a"), (3, "b")),
        ORDER,
        api=(("limit", BUSINESS),),
        until_seconds=20,
        serves_max=99,
    ),
    "order, business gets a limit": _of(
        {"a": {"scope": "S/k"}, "b": {"scope": "S/k", "due": 2}, "c": {}},
        ((0, "a"), (2, "b"), (2, "c")),
        {BUSINESS: {}, "S/k": {"in_order": True}},
        api=(("limit", BUSINESS),),
        until_seconds=20,
        serves_max=99,
    ),
    "order and limit 1, rekey": _of(
        {"a": {"waits": True}, "b": {"scope": "T"}, "c": {"scope": "T", "due": 1}},
        ((0, "a"), (0, "b"), (1, "c")),
        {BUSINESS: {"in_order": True}, "T": {"in_order": True, "in_flight": 1}},
        api=(("rekey", "a", "T"),),
        until_seconds=14,
        serves_max=99,
    ),
    "two redrives": _of(
        {"a": {}, "b": {"due": 4}},
        ((0, "a"), (4, "b")),
        ORDER,
        api=(("redrive", "a"), ("redrive", "a")),
        until_seconds=20,
        serves_max=99,
    ),
    "two redrives, limit": _of(
        {"a": {}, "b": {"due": 2}},
        ((0, "a"), (2, "b")),
        LIMIT_1,
        api=(("redrive", "a"), ("redrive", "a")),
        faults={"kill": 1, "dup": 1},
        until_seconds=20,
        serves_max=99,
    ),
}


def walked(name: str, rules_on: Mapping[str, bool], seed: int) -> Way | None:
    """What is broken on one random way through this scenario, and the way."""
    skew_ms = SKEW_MS if rules_on["take_skew"] else 0
    with patch.object(record, "SKEW_MS", skew_ms):
        return walk(SCENARIOS[name], rules_on, seed)
