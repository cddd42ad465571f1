"""Runs ministack with two repairs of its CloudFormation, which differs from that of AWS.

Run in the environment of `make deploy-emulated`, never in that of the tests. ministack refuses
alarms of metric math: here such an alarm exists with all its properties from the template, and is
never evaluated, since ministack does not compute metric math. And ministack gives SAM's transform
no parameters, from which the transform decides when to publish a new version of a function: here it
does.
"""

from contextvars import ContextVar
from typing import Any

from ministack.app import main
from ministack.services.cloudformation import changesets, engine, handlers, provisioners
from samtranslator.translator import transform

_record = provisioners._cw_metric_alarm_record


def record(name: str, properties: dict[str, Any]) -> dict[str, Any]:
    if not properties.get("Metrics"):
        return _record(name, properties)
    _expect_refusal(name, properties)
    plain = {**properties, "Metrics": None, "Namespace": "math", "MetricName": "math"}
    made = {**_record(name, plain), "Metrics": properties["Metrics"]}
    return {k: v for k, v in made.items() if k not in ("Namespace", "MetricName", "Statistic")}


def _expect_refusal(name: str, properties: dict[str, Any]) -> None:
    """Fails the stack with this reason once the repair is not needed any more."""
    try:
        _record(name, properties)
    except ValueError as refused:
        if "metric math" not in str(refused):
            raise
    else:
        raise RuntimeError("ministack makes alarms of metric math itself: run it as it is")


_applied, _transform = engine._apply_transforms, transform.transform
_parameters: ContextVar[dict[str, str]] = ContextVar("parameters")


def with_parameters(template: Any, provided: Any = None, previous: Any = None) -> Any:
    _parameters.set(engine._transform_parameters(template, provided, previous))
    return _applied(template, provided, previous)


def transformed(template: Any, values: dict[str, str], loader: Any) -> Any:
    """Fails the stack once the repair is not needed any more."""
    if values:
        raise RuntimeError("ministack gives SAM's transform its parameters: run it as it is")
    return _transform(template, _parameters.get(), loader)


provisioners._cw_metric_alarm_record = record
transform.transform = transformed
for users in (engine, changesets, handlers):
    users._apply_transforms = with_parameters
main()
