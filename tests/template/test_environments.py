"""What samconfig.toml deploys is what the template takes."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from local.aws.template import source_of

ROOT = Path(__file__).parents[2]
PARAMETERS: dict[str, Any] = source_of(ROOT / "template.yaml")["Parameters"]
CONFIGURED = tomllib.loads((ROOT / "samconfig.toml").read_text("utf-8"))
DEPLOYED: dict[str, dict[str, Any]] = {
    name: section["deploy"]["parameters"]
    for name, section in CONFIGURED.items()
    if name != "version"
}
OVERRIDES = [
    pytest.param(*line.split("=", 1), id=f"{environment}-{line}")
    for environment, options in DEPLOYED.items()
    for line in options.get("parameter_overrides", [])
]


def test_there_is_a_stack_of_its_own_for_each_environment() -> None:
    assert set(DEPLOYED) == {"default", "dev", "staging", "prod"}
    for option in ("stack_name", "s3_prefix"):
        assert len({options[option] for options in DEPLOYED.values()}) == len(DEPLOYED)
    for name in ("dev", "staging", "prod"):
        assert DEPLOYED[name]["stack_name"] == f"duewheel-{name}"
        assert f"environment={name}" in DEPLOYED[name]["tags"]


@pytest.mark.parametrize("environment", DEPLOYED)
def test_the_stacks_roles_may_be_made_and_its_code_has_a_bucket(environment: str) -> None:
    options = DEPLOYED[environment]
    # The second is asked for where a template with a transform has a stack within.
    assert options["capabilities"] == "CAPABILITY_IAM CAPABILITY_AUTO_EXPAND"
    assert options["resolve_s3"] is True


@pytest.mark.parametrize(("name", "value"), OVERRIDES)
def test_an_environment_gives_parameters_values_that_they_take(name: str, value: str) -> None:
    declared = PARAMETERS[name]
    assert value in map(str, declared.get("AllowedValues", [value]))
    assert re.fullmatch(declared.get("AllowedPattern", ".*"), value)
    if declared["Type"] == "Number":
        assert declared.get("MinValue", 0) <= int(value) <= declared.get("MaxValue", int(value))


def test_staging_is_deployed_as_production_but_for_logs_and_the_guard() -> None:
    def without(options: dict[str, Any]) -> list[str]:
        own = ("LogRetentionDays=", "TasksPerDayAlarm=")
        return [line for line in options["parameter_overrides"] if not line.startswith(own)]

    assert without(DEPLOYED["staging"]) == without(DEPLOYED["prod"])


def test_nobody_deploys_to_production_by_hand_without_being_shown_the_changes() -> None:
    assert DEPLOYED["prod"]["confirm_changeset"] is True
    assert DEPLOYED["default"]["confirm_changeset"] is True
