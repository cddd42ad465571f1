"""CloudFormation makes the same resources from the template as the tests and the local stack."""

import re
from collections.abc import Mapping

from duewheel import __version__
from local.aws.template import Template, load_template, source_of
from tests.emulated.deployment import ROOT, Deployment

TEMPLATE = ROOT / "template.yaml"
DECLARED = source_of(TEMPLATE)
NESTED = source_of(ROOT / "infra" / "observability.yaml")
# Metrics are on by default; both stacks send mails; and the emulator has no provisioned capacity.
ALIKE = {"HasMetrics", "HasAlarmEmail", "IsProvisioned", "HasProvisionedListIndex"}


def played(stack: Deployment) -> Template:
    """The template, evaluated by the tests' own implementation."""
    return load_template(TEMPLATE, stack.parameters)


def test_each_condition_is_true_in_one_stack_and_false_in_the_other(
    whole: Deployment, plain: Deployment
) -> None:
    one, other = played(whole).intrinsics, played(plain).intrinsics
    alike = {name for name in DECLARED["Conditions"] if one.holds(name) == other.holds(name)}
    assert alike == ALIKE


def test_each_resource_exists_whose_condition_is_true(stack: Deployment) -> None:
    declared = {name: one.type for name, one in played(stack).resources.items()}
    made = {name: one.type for name, one in stack.resources.items()}

    assert without_hashes(made) == without_hashes(declared)


def without_hashes(resources: Mapping[str, str]) -> dict[str, str]:
    """The transform names layers and versions by their content, which differs."""
    hashed = re.compile(r"(Layer|Version)[0-9a-f]{10}$")
    return {hashed.sub(r"\1", name): kind for name, kind in resources.items()}


def test_the_nested_stack_is_made_completely_or_not_at_all(
    whole: Deployment, plain: Deployment
) -> None:
    assert {name: one.type for name, one in whole.nested.items()} == {
        name: body["Type"] for name, body in NESTED["Resources"].items()
    }
    assert plain.nested == {}


def test_each_output_is_printed_whose_condition_is_true(stack: Deployment) -> None:
    conditions = played(stack).intrinsics
    declared = {
        name for name, body in DECLARED["Outputs"].items()
        if "Condition" not in body or conditions.holds(body["Condition"])
    }  # fmt: skip

    assert stack.outputs.keys() == declared
    assert all(stack.outputs.values())


def test_outputs_contain_the_ids_of_resources(whole: Deployment) -> None:
    names = {
        "WheelTable": "Wheel",
        "RegistryTable": "Registry",
        "SliceQueueUrl": "SliceQueue",
        "SlowQueueUrl": "SlowQueue",
        "DeadLetterQueueUrl": "DeadLetterQueue",
        "IngestQueueUrl": "IngestMessageQueue",
        "IngestDeadLetterQueueUrl": "IngestDeadLetterQueue",
        "AlarmTopic": "AlarmTopic",
    }
    assert {name: whole.outputs[name] for name in names} == {
        name: whole.id(logical_id) for name, logical_id in names.items()
    }
    assert whole.outputs["Version"] == __version__
