"""The units that the template provisions for a load, at least."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local.aws.template import Template, load_template, source_of

TEMPLATE = Path(__file__).resolve().parents[1] / "template.yaml"
SIZES = [int(n) for n in source_of(TEMPLATE)["Mappings"]["WheelUnits"] if n.isdecimal()]
ALARMS_OF_A_POLICY = 4  # on the use of its units, and on their number, two of each


@dataclass(frozen=True)
class Least:
    """Units a second of the Wheel and of its indexes."""

    table_writes: int
    table_reads: int
    index_writes: dict[str, int]
    index_reads: int
    alarms: int

    @property
    def writes(self) -> int:
        return self.table_writes + sum(self.index_writes.values())

    @property
    def reads(self) -> int:
        return self.table_reads + self.index_reads


def row(per_second: int) -> dict[str, int]:
    """What the template says of a load: least and most."""
    declared = source_of(TEMPLATE)["Mappings"]["WheelUnits"][str(per_second)]
    return {name: int(value) for name, value in declared.items()}


def least(per_second: int, *, list_index: bool) -> Least:
    """Of a load for which the template has a size."""
    template = load_template(
        TEMPLATE,
        {
            "Capacity": str(per_second),
            "ListIndex": "on" if list_index else "off",
        },
    )
    wheel = _resolved(template, "Wheel")
    indexes = {one["IndexName"]: _units(one) for one in wheel["GlobalSecondaryIndexes"]}
    policies = template.of_type("AWS::ApplicationAutoScaling::ScalingPolicy")
    return Least(
        table_writes=_units(wheel)["WriteCapacityUnits"],
        table_reads=_units(wheel)["ReadCapacityUnits"],
        index_writes={name: units["WriteCapacityUnits"] for name, units in indexes.items()},
        index_reads=sum(units["ReadCapacityUnits"] for units in indexes.values()),
        alarms=ALARMS_OF_A_POLICY * len(policies),
    )


def _units(declared: dict[str, Any]) -> dict[str, int]:
    return {kind: int(value) for kind, value in declared["ProvisionedThroughput"].items()}


def _resolved(template: Template, logical_id: str) -> dict[str, Any]:
    resolved: dict[str, Any] = template.resolve(
        template.resources[logical_id].properties, _Unnamed()
    )
    return resolved


class _Unnamed:
    """The units refer to no resource."""

    def ref(self, logical_id: str) -> str:
        return logical_id

    def attribute(self, logical_id: str, name: str) -> str:
        return f"{logical_id}.{name}"
