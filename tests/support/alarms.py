"""CloudWatch's alarms as both templates declare them, and their states.

AWS's rules for missing data: an alarm reads a few more periods than it evaluates, uses the latest
of those that have data, and fills the missing ones by its setting. A property that this module does
not support is an error.
"""

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

import boto3

from local.aws.metrics import Minute
from local.aws.resources import Resources, create_resources
from local.aws.template import load_template

ROOT = Path(__file__).parents[2]
LOOKED_AT_BEYOND = 2  # periods; AWS says "a few", and shows two in its examples
TREATED: Mapping[str, bool | None] = {"breaching": True, "notBreaching": False, "missing": None}
COMPARED: Mapping[str, Callable[[float, float], bool]] = {
    "GreaterThanThreshold": operator.gt,
    "LessThanThreshold": operator.lt,
}


@dataclass(frozen=True)
class Metric:
    namespace: str
    name: str
    dimensions: tuple[tuple[str, str], ...] = ()


Read = Callable[[Metric], Mapping[int, Minute]]


@dataclass(frozen=True)
class Watched:
    """A metric of an alarm, in periods of `minutes`."""

    metric: Metric
    statistic: str
    minutes: int

    def at(self, read: Read, minute: int) -> float | None:
        """The value of the period that ends with the minute; None if it has no data."""
        told = read(self.metric)
        first = minute - self.minutes + 1
        parts = [told[each] for each in range(first, minute + 1) if each in told]
        return _statistic(self.statistic, parts) if parts else None


@dataclass(frozen=True)
class Alarm:
    name: str
    description: str
    watched: Mapping[str, Watched]
    expression: str
    evaluated: int  # periods
    to_alarm: int  # of those
    threshold: float
    is_breaching: Callable[[float, float], bool]
    is_missing_breaching: bool | None  # None: missing data lead to INSUFFICIENT_DATA

    def is_off(self, read: Read, minute: int) -> bool:
        """Whether by this minute the alarm has notified of ALARM or, if configured, of
        INSUFFICIENT_DATA. Each alarm begins in INSUFFICIENT_DATA, without a notification."""
        step = next(iter(self.watched.values())).minutes
        looked_at = self.evaluated + LOOKED_AT_BEYOND
        values = [self._value(read, minute - back * step) for back in range(looked_at)]
        known = [self.is_breaching(v, self.threshold) for v in values if v is not None]
        if self.is_missing_breaching is None:
            if not known:
                return self._has_had_data(read, minute)
            return sum(known[: self.evaluated]) >= self.to_alarm
        filled = known + [self.is_missing_breaching] * self.evaluated
        return sum(filled[: self.evaluated]) >= self.to_alarm

    def _has_had_data(self, read: Read, minute: int) -> bool:
        watched = self.watched.values()
        return any(told <= minute for each in watched for told in read(each.metric))

    def _value(self, read: Read, minute: int) -> float | None:
        parts = {name: each.at(read, minute) for name, each in self.watched.items()}
        return None if all(v is None for v in parts.values()) else compute(self.expression, parts)


def compute(expression: str, parts: Mapping[str, float | None]) -> float | None:
    """The part of metric math that the templates use; None means no value."""
    return _Math(parts).of(ast.parse(expression, mode="eval").body)


class _Math:
    OPERATORS: Mapping[type, Callable[[float, float], float]] = {
        ast.Add: operator.add,
        ast.Sub: operator.sub,
        ast.Mult: operator.mul,
        ast.GtE: operator.ge,
    }

    def __init__(self, parts: Mapping[str, float | None]) -> None:
        self._parts = parts

    def of(self, node: ast.expr) -> float | None:
        match node:
            case ast.Constant(value=int() | float() as number):
                return number
            case ast.Name(id=name):
                return self._parts[name]
            case ast.Call(func=ast.Name(id="FILL"), args=[metric, ast.Constant(value=number)]):
                value = self.of(metric)
                return number if value is None else value
            case ast.Call(func=ast.Name(id="IF"), args=[condition, then, otherwise]):
                return self.of(then if self.of(condition) else otherwise)
            case ast.Compare(left=left, ops=[operation], comparators=[right]):
                return self._computed(operation, left, right)
            case ast.BinOp(left=left, op=operation, right=right):
                return self._computed(operation, left, right)
        raise NotImplementedError(ast.unparse(node))

    def _computed(self, operation: ast.AST, left: ast.expr, right: ast.expr) -> float | None:
        a, b = self.of(left), self.of(right)
        if a is None or b is None:
            return None
        if isinstance(operation, ast.Div):
            return a / b if b else None
        return self.OPERATORS[type(operation)](a, b)


def _statistic(name: str, parts: list[Minute]) -> float:
    if name == "Sum":
        return sum(part.sum for part in parts)
    if name == "Maximum":
        return max(part.max for part in parts)
    if name.startswith("p"):
        values = sorted(value for part in parts for value in part.values)
        return values[ceil(len(values) * float(name[1:]) / 100) - 1]
    raise NotImplementedError(name)


def observability(parent: Resources) -> Resources:
    """The nested stack's resources, with the parameters of its parent. It has no tables or queues,
    so none are created."""
    (nested,) = parent.template.of_type("AWS::CloudFormation::Stack")
    properties = parent.resolve(nested.properties)
    template = load_template(
        ROOT / properties["TemplateURL"],
        {name: str(value) for name, value in properties["Parameters"].items()},
    )
    return Resources(template, boto3.client("dynamodb"), boto3.client("sqs"))


def with_observability(**parameters: str) -> Resources:
    """The resources of the whole template, within an emulator."""
    template = load_template(ROOT / "template.yaml", {"Observability": "full", **parameters})
    return create_resources(template, boto3.client("dynamodb"), boto3.client("sqs"))


def alarms_of(*stacks: Resources) -> list[Alarm]:
    return [
        _alarm(resource.logical_id.removesuffix("Alarm"), resources.resolve(resource.properties))
        for resources in stacks
        for resource in resources.template.of_type("AWS::CloudWatch::Alarm")
    ]


def _alarm(name: str, properties: dict[str, Any]) -> Alarm:
    queries = properties.get("Metrics") or [_single(properties)]
    (expression,) = [q["Expression"] for q in queries if q.get("ReturnData", True)]
    return Alarm(
        name,
        properties["AlarmDescription"],
        {q["Id"]: _watched(q["MetricStat"]) for q in queries if "MetricStat" in q},
        expression,
        int(properties["EvaluationPeriods"]),
        int(properties.get("DatapointsToAlarm", properties["EvaluationPeriods"])),
        float(properties["Threshold"]),
        COMPARED[properties["ComparisonOperator"]],
        TREATED[properties["TreatMissingData"]],
    )


def _single(properties: dict[str, Any]) -> dict[str, Any]:
    """An alarm on one metric, as metric math."""
    return {
        "Id": "m",
        "Expression": "m",
        "MetricStat": {
            "Metric": properties,
            "Stat": properties.get("Statistic") or properties["ExtendedStatistic"],
            "Period": properties["Period"],
        },
    }


def _watched(query: dict[str, Any]) -> Watched:
    metric = query["Metric"]
    dimensions = tuple((d["Name"], d["Value"]) for d in metric.get("Dimensions", ()))
    named = Metric(metric["Namespace"], metric["MetricName"], dimensions)
    return Watched(named, query["Stat"], int(query["Period"]) // 60)


def metrics_of(alarms: list[Alarm]) -> Iterator[Metric]:
    for alarm in alarms:
        for watched in alarm.watched.values():
            yield watched.metric
