"""Provisioned capacity: each table and index that has units has targets that scale them."""

from pathlib import Path
from typing import Any

from bench import limits
from local.aws.template import Resource, Template, load_template, source_of
from tests.support.cases import each_case

TEMPLATE = Path(__file__).parents[2] / "template.yaml"
SOURCE: dict[str, Any] = source_of(TEMPLATE)
CHOICES: list[str] = SOURCE["Parameters"]["Capacity"]["AllowedValues"]
SIZES = [one for one in CHOICES if one != "on-demand"]
TARGET, POLICY = (
    "AWS::ApplicationAutoScaling::ScalableTarget",
    "AWS::ApplicationAutoScaling::ScalingPolicy",
)


class _Named:
    def ref(self, logical_id: str) -> str:
        return logical_id

    def attribute(self, logical_id: str, name: str) -> str:
        return f"{logical_id}.{name}"


def provisioned(size: str = "10", list_index: str = "on") -> Template:
    return load_template(TEMPLATE, {"Capacity": size, "ListIndex": list_index})


def resolved(template: Template, resource: Resource) -> dict[str, Any]:
    properties: dict[str, Any] = template.resolve(resource.properties, _Named())
    return properties


def units(template: Template) -> dict[tuple[str, str], int]:
    """The units of the Wheel and of its indexes, by resource and dimension as targets name them."""
    wheel = resolved(template, template.resources["Wheel"])
    found = {
        "table/Wheel": wheel["ProvisionedThroughput"],
        **{
            f"table/Wheel/index/{index['IndexName']}": index["ProvisionedThroughput"]
            for index in wheel["GlobalSecondaryIndexes"]
        },
    }
    return {
        (name, f"dynamodb:{'index' if '/index/' in name else 'table'}:{kind}"): int(value)
        for name, throughput in found.items()
        for kind, value in throughput.items()
    }


def targets(template: Template) -> dict[tuple[str, str], dict[str, Any]]:
    every = [resolved(template, target) for target in template.of_type(TARGET)]
    return {(one["ResourceId"], one["ScalableDimension"]): one for one in every}


def test_nothing_is_provisioned_or_scaled_by_default() -> None:
    template = load_template(TEMPLATE)
    assert not template.of_type(TARGET)
    assert not template.of_type(POLICY)
    for table in template.of_type("AWS::DynamoDB::Table"):
        properties = resolved(template, table)
        assert properties["BillingMode"] == "PAY_PER_REQUEST"
        assert "ProvisionedThroughput" not in properties
        for index in properties.get("GlobalSecondaryIndexes", []):
            assert "ProvisionedThroughput" not in index


@each_case("size", SIZES)
@each_case("list_index", ["on", "off"])
def test_what_has_units_is_scaled_from_these_up(size: str, list_index: str) -> None:
    template = provisioned(size, list_index)
    there, scaled = units(template), targets(template)
    assert {key: int(target["MinCapacity"]) for key, target in scaled.items()} == there
    assert len(there) == (8 if list_index == "on" else 6)
    assert all(int(one["MinCapacity"]) < int(one["MaxCapacity"]) for one in scaled.values())
    assert all(one["ServiceNamespace"] == "dynamodb" for one in scaled.values())


def test_the_other_tables_stay_on_demand() -> None:
    template = provisioned()
    modes = {
        table.logical_id: resolved(template, table)["BillingMode"]
        for table in template.of_type("AWS::DynamoDB::Table")
    }
    assert modes.pop("Wheel") == "PROVISIONED"
    assert {*modes.values()} == {"PAY_PER_REQUEST"}


def test_every_target_is_scaled_by_the_use_of_its_own_kind_of_units() -> None:
    template = provisioned()
    policies = [resolved(template, policy) for policy in template.of_type(POLICY)]
    assert {one["ScalingTargetId"] for one in policies} == {
        target.logical_id for target in template.of_type(TARGET)
    }
    for policy in policies:
        kind = "Write" if policy["ScalingTargetId"].endswith("Writes") else "Read"
        target = resolved(template, template.resources[policy["ScalingTargetId"]])
        assert target["ScalableDimension"].endswith(f":{kind}CapacityUnits")
        assert policy["TargetTrackingScalingPolicyConfiguration"] == {
            "PredefinedMetricSpecification": {
                "PredefinedMetricType": f"DynamoDB{kind}CapacityUtilization"
            },
            "TargetValue": 70,
        }


def test_a_target_is_created_after_its_table_and_deleted_before_it() -> None:
    """By its reference, since without the table there is nothing to register."""
    declared = SOURCE["Resources"]
    for name, resource in declared.items():
        if resource["Type"] == TARGET:
            assert "${Wheel}" in str(resource["Properties"]["ResourceId"]), name


@each_case("size", SIZES)
def test_the_most_is_five_times_the_load_and_within_the_quota_of_a_table(size: str) -> None:
    row = SOURCE["Mappings"]["WheelUnits"][size]
    assert int(row["MostWrites"]) == 5 * int(row["Writes"])
    assert int(row["MostListWrites"]) == 5 * int(row["ListWrites"])
    most = [
        int(target["MaxCapacity"])
        for (_, dimension), target in targets(provisioned(size)).items()
        if "Write" in dimension
    ]
    assert sum(most) <= limits.TABLE_WRITE_UNITS.value  # table and indexes together


def test_there_are_units_for_each_capacity_that_can_be_chosen() -> None:
    """Also for on-demand: CloudFormation may look up the branch of a condition that is false."""
    assert list(SOURCE["Mappings"]["WheelUnits"]) == CHOICES
    assert all(size.isdecimal() for size in SIZES)
