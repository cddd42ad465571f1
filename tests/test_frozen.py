"""`@frozen` makes what a frozen dataclass would be, for all that can be told from outside."""

from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, field
from dataclasses import replace as replace_dataclass
from typing import Any

import pytest

from duewheel.frozen import frozen, replace


@frozen
class Point:
    x: int
    y: int
    label: str = ""
    tags: list[str] = field(default_factory=list)

    @property
    def sum(self) -> int:
        return self.x + self.y


@dataclass(frozen=True)
class _Point:
    x: int
    y: int
    label: str = ""
    tags: list[str] = field(default_factory=list)


_Point.__qualname__ = "Point"

ARGUMENTS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((1, 2), {}),
    ((1, 2, "a", ["b"]), {}),
    ((1,), {"y": 2}),
    ((), {"y": 2, "x": 1, "tags": []}),
    ((1, 2), {"label": "a"}),
]
WRONG: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((), {}),
    ((1,), {}),
    ((), {"x": 1}),
    ((1,), {"label": "a"}),
    ((1, 2, "a", [], 5), {}),
    ((1, 2), {"z": 3}),
    ((1, 2), {"x": 1}),
    ((1,), {"x": 1, "y": 2}),
]


@pytest.mark.parametrize(("values", "named"), ARGUMENTS)
def test_it_takes_and_shows_what_a_dataclass_does(
    values: tuple[Any, ...], named: dict[str, Any]
) -> None:
    mine, usual = Point(*values, **named), _Point(*values, **named)
    assert vars(mine) == vars(usual)
    assert repr(mine) == repr(usual)
    assert mine == Point(*values, **named)
    assert mine != usual
    assert mine.sum == 3


@pytest.mark.parametrize(("values", "named"), WRONG)
@pytest.mark.parametrize("make", [Point, _Point])
def test_wrong_arguments_are_refused(
    make: Callable[..., Any], values: tuple[Any, ...], named: dict[str, Any]
) -> None:
    with pytest.raises(TypeError):
        make(*values, **named)


def test_instances_share_no_default_that_can_be_changed() -> None:
    one = Point(1, 2)
    one.tags.append("a")
    assert Point(1, 2).tags == []


def test_nothing_can_be_set_or_deleted() -> None:
    point: Any = Point(1, 2)
    for name in ("x", "z"):
        with pytest.raises(FrozenInstanceError):
            setattr(point, name, 5)
    with pytest.raises(FrozenInstanceError):
        del point.x
    assert point.x == 1


def test_equal_ones_are_one_key() -> None:
    keys = {Label(1, "a"), Label(number=1, text="a"), Label(text="a", number=1)}
    assert len(keys) == 1
    assert len({Label(1, "a"), Label(1, "b"), Label(2, "a"), Label(1)}) == 4
    assert Label(1, "a") != Other(1, "a")


def test_a_field_is_replaced_and_no_other() -> None:
    point = Point(1, 2, "a", ["b"])
    changed = replace(point, y=5)
    assert changed == Point(1, 5, "a", ["b"])
    assert point == Point(1, 2, "a", ["b"])
    assert repr(changed) == repr(replace_dataclass(_Point(1, 2, "a", ["b"]), y=5))
    with pytest.raises(TypeError):
        replace(point, z=5)  # type: ignore[call-arg]


def test_fields_match_by_position() -> None:
    match Label(7, "a"):
        case Label(number, text):
            assert (number, text) == (7, "a")
        case _:
            raise AssertionError


def test_methods_of_its_own_are_kept() -> None:
    assert repr(Secret("whsec")) == "Secret"


@frozen
class Label:
    number: int
    text: str = ""


@frozen
class Other:
    number: int
    text: str = ""


@frozen
class Secret:
    value: str

    def __repr__(self) -> str:
        return "Secret"
