"""Frozen classes: `@frozen` where `@dataclass(frozen=True)` could stand, of which the service has
some two hundred.

A dataclass writes its methods as source and compiles it, about a millisecond a class, at every
cold start (docs/decisions/0033-cold-starts.md). Here all classes share methods that were compiled
when the package was built. Invariant: what can be told from outside is as with a dataclass:
arguments, defaults, equality, hash, repr, `match`, and errors.
"""

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, field
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """Fields in the order of their annotations, those with a default behind those without."""
    names = tuple(cls.__annotations__)
    defaults, factories = _defaults(cls, names)
    methods = {
        "__init__": _init(cls, names, defaults, factories),
        "__eq__": _eq,
        "__hash__": _hash,
        "__repr__": _repr,
        "__setattr__": _refuse_to_set,
        "__delattr__": _refuse_to_delete,
        "__match_args__": names,
    }
    for name, method in methods.items():
        if name not in cls.__dict__:
            setattr(cls, name, method)
    return cls


if TYPE_CHECKING:  # mypy knows its types of arguments, also for what `frozen` makes
    from dataclasses import replace as replace
else:

    def replace(instance: T, /, **changes: Any) -> T:
        """Another one, with these fields changed."""
        if not instance.__dict__.keys() >= changes.keys():
            raise TypeError(f"{type(instance).__qualname__} has no {set(changes)}")
        other = object.__new__(type(instance))
        other.__dict__.update(instance.__dict__, **changes)
        return other


def _defaults(
    cls: type, names: tuple[str, ...]
) -> tuple[dict[str, Any], dict[str, Callable[[], Any]]]:
    """Of every field, what it is at first, MISSING where it has to be given; and who makes those
    that no two instances share."""
    defaults: dict[str, Any] = {}
    factories: dict[str, Callable[[], Any]] = {}
    for name in names:
        default = cls.__dict__.get(name, MISSING)
        if isinstance(default, Field):
            if default.default_factory is not MISSING:
                factories[name] = default.default_factory
            default = default.default
            delattr(cls, name)
        defaults[name] = default
    return defaults, factories


def _init(
    cls: type,
    names: tuple[str, ...],
    defaults: dict[str, Any],
    factories: dict[str, Callable[[], Any]],
) -> Callable[..., None]:
    required = [name for name in names if defaults[name] is MISSING and name not in factories]

    def __init__(self: Any, /, *values: Any, **named: Any) -> None:
        state = self.__dict__
        state.update(defaults)  # so that all have their fields in the same order
        state.update(zip(names, values, strict=False))
        state.update(named)
        if len(values) < len(required) and not named.keys() >= set(required[len(values) :]):
            raise TypeError(f"{cls.__qualname__} needs {', '.join(required)}")
        if len(values) > len(names) or len(state) > len(names):
            raise TypeError(f"{cls.__qualname__} has {', '.join(names)}, and no more")
        if named and not named.keys().isdisjoint(names[: len(values)]):
            raise TypeError(f"{cls.__qualname__} was given a field twice")
        for name, make in factories.items():
            if state[name] is MISSING:
                state[name] = make()

    return __init__


def _eq(self: Any, other: object) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return self.__dict__ == other.__dict__


def _hash(self: Any) -> int:
    return hash(tuple(self.__dict__.values()))


def _repr(self: Any) -> str:
    said = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items())
    return f"{type(self).__qualname__}({said})"


def _refuse_to_set(self: Any, name: str, value: Any) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: Any, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")
