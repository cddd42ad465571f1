"""CloudFormation's intrinsic functions, resolved.

Invariant: an unknown function is an error that names it; it is never passed through.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol


class TemplateError(Exception):
    """The template contains something that the local stack does not support."""


class References(Protocol):
    """The values of `Ref` and `Fn::GetAtt` of a resource."""

    def ref(self, logical_id: str) -> str: ...

    def attribute(self, logical_id: str, name: str) -> str: ...


class NoReferences:
    """Refuses references in conditions, which may use only parameters."""

    def ref(self, logical_id: str) -> str:
        raise TemplateError(f"{logical_id} is neither a parameter nor a resource")

    def attribute(self, logical_id: str, name: str) -> str:
        raise TemplateError(f"{logical_id}.{name} cannot be used here")


_NO_VALUE = object()


class Intrinsics:
    def __init__(
        self,
        parameters: Mapping[str, Any],
        conditions: Mapping[str, Any],
        mappings: Mapping[str, Any],
    ) -> None:
        self._parameters = parameters
        self._conditions = conditions
        self._mappings = mappings
        self._held: dict[str, bool] = {}  # parameters stay as they are, and so do conditions

    def holds(self, condition: str) -> bool:
        if condition not in self._conditions:
            raise TemplateError(f"condition {condition} is not declared")
        if condition not in self._held:
            declared = self._conditions[condition]
            self._held[condition] = bool(_Resolution(self, NoReferences()).of(declared))
        return self._held[condition]

    def resolve(self, value: Any, references: References) -> Any:
        resolved = _Resolution(self, references).of(value)
        return None if resolved is _NO_VALUE else resolved

    def parameter(self, name: str) -> Any:
        return self._parameters.get(name)

    def mapped(self, name: str, top: str, second: str) -> Any:
        try:
            return self._mappings[name][top][second]
        except KeyError as error:
            raise TemplateError(f"mapping {name} has no {top}.{second}") from error


class _Resolution:
    """One walk over one value."""

    def __init__(self, intrinsics: Intrinsics, references: References) -> None:
        self._intrinsics = intrinsics
        self._references = references
        self._functions: dict[str, Callable[[Any], Any]] = {
            "Ref": self._ref,
            "Condition": intrinsics.holds,
            "Fn::If": self._if,
            "Fn::Sub": self._sub,
            "Fn::GetAtt": self._get_att,
            "Fn::Join": lambda a: str(self.of(a[0])).join(map(str, self.of(a[1]))),
            "Fn::Select": lambda a: self.of(a[1])[int(self.of(a[0]))],
            "Fn::Split": lambda a: str(self.of(a[1])).split(str(self.of(a[0]))),
            "Fn::Equals": lambda a: str(self.of(a[0])) == str(self.of(a[1])),
            "Fn::Not": lambda a: not self.of(a[0]),
            "Fn::And": lambda a: all(self.of(part) for part in a),
            "Fn::Or": lambda a: any(self.of(part) for part in a),
            "Fn::FindInMap": lambda a: intrinsics.mapped(*map(self.of, a)),
        }

    def of(self, value: Any) -> Any:
        if isinstance(value, list):
            parts = [self.of(part) for part in value]
            return [part for part in parts if part is not _NO_VALUE]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            name, argument = next(iter(value.items()))
            if name.startswith("Fn::") and name not in self._functions:
                raise TemplateError(f"{name} is not understood")
            if _is_intrinsic(name, argument):
                return self._functions[name](argument)
        members = {key: self.of(part) for key, part in value.items()}
        return {key: part for key, part in members.items() if part is not _NO_VALUE}

    def _ref(self, name: str) -> Any:
        if name == "AWS::NoValue":
            return _NO_VALUE
        value = self._intrinsics.parameter(name)
        return self._references.ref(name) if value is None else value

    def _if(self, argument: list[Any]) -> Any:
        condition, then, otherwise = argument
        return self.of(then if self._intrinsics.holds(condition) else otherwise)

    def _get_att(self, argument: Any) -> str:
        logical_id, name = argument.split(".", 1) if isinstance(argument, str) else argument
        return self._references.attribute(logical_id, name)

    def _sub(self, argument: Any) -> str:
        text, variables = argument if isinstance(argument, list) else (argument, {})

        def replaced(match: re.Match[str]) -> str:
            name = match[1].strip()
            if name.startswith("!"):
                return f"${{{name[1:]}}}"
            if name in variables:
                return str(self.of(variables[name]))
            return str(self._get_att(name) if "." in name else self._ref(name))

        return re.sub(r"\$\{([^}]+)\}", replaced, text)


def _is_intrinsic(name: str, argument: Any) -> bool:
    """`Ref` and `Condition` name something; a policy's `Condition` block is plain data."""
    return name.startswith("Fn::") or (name in ("Ref", "Condition") and isinstance(argument, str))
