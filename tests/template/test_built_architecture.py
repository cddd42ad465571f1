"""What `make build` makes of the parameter Architecture: a fact of the package."""

from pathlib import Path

import pytest
import yaml

from infra.finish_build import settle_architecture
from local.aws.template import load_template, source_of
from tests.support.bounds import quick_first

SOURCE = Path(__file__).parents[2] / "template.yaml"


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """As the SAM CLI writes it, which has resolved what its own metadata say."""
    template = source_of(SOURCE)
    for resource in template["Resources"].values():
        if "BuildArchitecture" in resource.get("Metadata", {}):
            resource["Metadata"]["BuildArchitecture"] = "arm64"
    path = tmp_path / "template.yaml"
    path.write_text(yaml.safe_dump(template, sort_keys=False))
    return path


@pytest.mark.parametrize("architecture", quick_first(["arm64", "x86_64"], pytest.mark.exhaustive))
def test_a_package_of_either_architecture_is_deployed_over_a_stack_of_the_other(
    built: Path, architecture: str
) -> None:
    """`sam deploy` gives a parameter that nobody names the value that it has in the stack."""
    settle_architecture(built, architecture)

    template = load_template(built)
    assert "Architecture" not in source_of(built)["Parameters"]
    expected = load_template(SOURCE, {"Architecture": architecture})
    for kind, name in (
        ("AWS::Lambda::Function", "Architectures"),
        ("AWS::Lambda::LayerVersion", "CompatibleArchitectures"),
    ):
        found = [one.properties[name] for one in template.of_type(kind)]
        assert found == [[architecture]] * len(expected.of_type(kind))


def test_nothing_but_the_parameter_is_taken_away(built: Path) -> None:
    before = source_of(built)
    settle_architecture(built, "arm64")
    after = source_of(built)
    before["Parameters"].pop("Architecture")
    assert after["Parameters"] == before["Parameters"]
    assert after["Resources"].keys() == before["Resources"].keys()
    assert after["Outputs"] == before["Outputs"]


@pytest.mark.parametrize("where", ["{Ref: Architecture}", "!Sub of ${Architecture}"])
def test_a_use_that_it_does_not_know_stops_the_build(built: Path, where: str) -> None:
    with built.open("a") as template:
        template.write(f"Elsewhere: {where}\n")
    before = built.read_text("utf-8")
    with pytest.raises(SystemExit, match="where it was not expected"):
        settle_architecture(built, "arm64")
    assert built.read_text("utf-8") == before


def test_a_template_without_it_stops_the_build(built: Path) -> None:
    settle_architecture(built, "arm64")
    with pytest.raises(SystemExit, match="as expected"):
        settle_architecture(built, "x86_64")
