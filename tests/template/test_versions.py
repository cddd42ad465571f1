"""Every function is invoked by its alias, and a new version is published whenever one is needed."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from duewheel.settings import LIVE
from infra.finish_build import digest_of, settle_digest
from local.aws.template import Template, load_template, source_of, translate
from tests.support.bounds import quick_first
from tests.support.cases import each_case
from tests.support.rights_in_use import EVERYTHING

TEMPLATE = Path(__file__).parents[2] / "template.yaml"
SOURCE: dict[str, Any] = source_of(TEMPLATE)
EVERY_FUNCTION = {
    "AuthMode": "keys",
    "IngestBusinesses": "*",
    "ProvisionedPollers": "2",
    "StackTimersAs": "duewheel-write",
}
# A fact of the package, and of its digest.
OF_THE_BUILD = {"Architecture"}
# Of what is no choice and no number.
SAMPLES = {
    **EVERYTHING,
    "AllowedPrivateCidrs": "10.0.0.0/16",
    "IngestBusinesses": "orders-*",
    "AlarmEmail": "operators@example.com",
    "CertificateArn": "arn:aws:acm:us-east-1:123456789012:certificate/0f5a2c9e",
    "DomainName": "timers.example.com",
    "PermissionsBoundaryArn": "arn:aws:iam::123456789012:policy/boundary",
    "ProvisionedPollers": "2",
}


@pytest.fixture(scope="module")
def usual() -> Template:
    return load_template(TEMPLATE)


def versions(template: Template) -> dict[str, str]:
    """By function: what makes CloudFormation publish another is another logical id."""
    return {
        one.properties["FunctionName"]["Ref"]: one.logical_id
        for one in template.of_type("AWS::Lambda::Version")
    }


# ---------------------------------------------------------------- who invokes what


def test_whatever_invokes_a_function_names_its_alias() -> None:
    """Else it would meet the code before its layers, or a version that was taken back."""
    template = load_template(TEMPLATE, EVERY_FUNCTION)
    functions = {one.logical_id for one in template.functions()}
    aliases = {one.logical_id for one in template.of_type("AWS::Lambda::Alias")}
    invoking = {
        "AWS::ApiGatewayV2::Integration": "IntegrationUri",
        "AWS::ApiGatewayV2::Authorizer": "AuthorizerUri",
        "AWS::Events::Rule": "Targets",
        "AWS::Lambda::EventSourceMapping": "FunctionName",
        "AWS::Lambda::Permission": "FunctionName",
    }
    named = {
        (kind, name)
        for kind, property_ in invoking.items()
        for one in template.of_type(kind)
        for name in referred_to(one.properties[property_])
    }

    token = source_of(TEMPLATE)["Outputs"]["StackTimers"]["Value"]  # of other stacks' templates
    assert token == {"Ref": "StackTimersFunction.Alias"}
    named.add(("Outputs", "StackTimersFunctionAliaslive"))
    (function,) = (
        one
        for one in template.of_type("AWS::Lambda::Function")
        if one.logical_id == "StackTimersFunction"
    )
    assert function.properties["FunctionName"] == {"Fn::Sub": "${AWS::StackName}-timers"}

    assert not {name for _, name in named} & functions
    by_name = {"BulkFunctionAliaslive"}  # in the settings of those that invoke it
    assert {name for _, name in named} - {"AWS::Partition", "AWS::Region"} == aliases - by_name
    assert len(aliases) == len(functions) + 1, "and that of the pollers that stay"
    for config in template.of_type("AWS::Lambda::EventInvokeConfig"):
        assert config.properties["Qualifier"] == LIVE


def test_the_second_link_names_the_alias_too() -> None:
    template = load_template(TEMPLATE, EVERY_FUNCTION)
    for function in template.functions():
        variables = function.properties["Environment"]["Variables"]
        told = variables.get("NOTIFIER_FUNCTION")
        assert told in (None, {"Fn::Sub": f"${{NotifierFunction}}:{LIVE}"})
        assert (told is None) == (function.logical_id in ("NotifierFunction", "AuthorizerFunction"))


def test_an_api_is_led_to_an_alias_when_it_may_invoke_it() -> None:
    """An update makes the right first, and requests go on being answered."""
    made = translate(TEMPLATE)["Resources"]
    permissions = {
        name
        for name, body in made.items()
        if body["Type"] == "AWS::Lambda::Permission"
        and body["Properties"]["FunctionName"] == {"Ref": "ApiFunctionAliaslive"}
    }
    assert set(made["ApiIntegration"]["DependsOn"]) == permissions
    assert made["KeyAuthorizer"]["DependsOn"] == "AuthorizerPermission"


# ---------------------------------------------------------------- what makes another version


def another(name: str) -> str:
    """A value that the parameter takes, other than its default."""
    declared = SOURCE["Parameters"][name]
    usual = str(declared["Default"])
    if "AllowedValues" in declared:
        return next(str(value) for value in declared["AllowedValues"] if str(value) != usual)
    if declared["Type"] == "Number":
        return next(str(declared[b]) for b in ("MaxValue", "MinValue") if str(declared[b]) != usual)
    return SAMPLES[name]


class Named:
    def ref(self, logical_id: str) -> str:
        return logical_id

    def attribute(self, logical_id: str, name: str) -> str:
        return f"{logical_id}.{name}"


def seen_by_functions(template: Template) -> dict[str, Any]:
    """What they are configured with, but for their layers."""
    seen = {}
    for function in template.functions():
        resolved = template.resolve(function.properties, Named())
        seen[function.logical_id] = {k: v for k, v in resolved.items() if k != "Layers"}
    return seen


@pytest.mark.parametrize(
    "name",
    quick_first(sorted(SOURCE["Parameters"].keys() - OF_THE_BUILD), pytest.mark.exhaustive, 8),
)
def test_a_parameter_that_a_function_sees_makes_other_versions_of_functions_that_are_others(
    name: str, usual: Template
) -> None:
    """Without, it would never come to the functions. And of a function that is what it was Lambda
    publishes no version, so that the deployment fails: another layer makes it another."""
    before, after = usual, load_template(TEMPLATE, {name: another(name)})
    seen, sees = seen_by_functions(before), seen_by_functions(after)
    in_both = seen.keys() & sees.keys()  # a parameter may add a function
    changed = any(seen[function] != sees[function] for function in in_both)
    old, new = ({one: of[one] for one in in_both} for of in (versions(before), versions(after)))

    is_published = not old.items() & new.items()
    assert is_published or (old == new and not changed)
    assert is_published == (layers(before) != layers(after))


def layers(template: Template) -> set[str]:
    return {one.logical_id for one in template.of_type("AWS::Lambda::LayerVersion")}


def test_another_package_makes_other_versions_and_another_layer(tmp_path: Path) -> None:
    def built(*, line: str) -> Template:
        (tmp_path / "CoreLayer").mkdir(exist_ok=True)
        (tmp_path / "CoreLayer" / "module.py").write_text(line)
        path = tmp_path / "template.yaml"
        path.write_text(yaml.safe_dump(json.loads(json.dumps(SOURCE))), "utf-8")
        settle_digest(path, digest_of(tmp_path))
        return load_template(path)

    first, other, again = built(line="A"), built(line="B"), built(line="A")

    assert not versions(first).items() & versions(other).items()
    assert layers(first) != layers(other)
    assert (versions(first), layers(first)) == (versions(again), layers(again))


def test_bytecode_makes_no_other_package(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("")
    before = digest_of(tmp_path)
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "app.cpython-313.pyc").write_bytes(b"1")
    assert digest_of(tmp_path) == before
    (tmp_path / "app.py").rename(tmp_path / "other.py")
    assert digest_of(tmp_path) != before


def test_versions_stay_to_be_gone_back_to() -> None:
    made = translate(TEMPLATE)["Resources"].values()
    policies = {one["DeletionPolicy"] for one in made if one["Type"] == "AWS::Lambda::Version"}
    assert policies == {"Retain"}


# ---------------------------------------------------------------- before traffic moves


def test_no_version_is_published_before_each_function_was_checked() -> None:
    made = translate(TEMPLATE)["Resources"]
    versions = [one for one in made.values() if one["Type"] == "AWS::Lambda::Version"]
    template = load_template(TEMPLATE, EVERY_FUNCTION)
    check = template.resources["Check"].properties
    checked = template.resolve(check["Functions"], Named())

    assert all("Check" in referred_to(version) for version in versions)
    assert set(checked) == {f"{one.logical_id}.Arn" for one in template.functions()}
    assert len(versions) == len(checked) == len(template.functions())


def test_another_layer_is_another_check() -> None:
    """CloudFormation asks for a check when a property of the resource changes."""
    check = translate(TEMPLATE)["Resources"]["Check"]["Properties"]
    assert check["Package"]["Ref"] in layers(load_template(TEMPLATE))


def test_the_check_may_invoke_the_functions_and_nothing_else() -> None:
    template = load_template(TEMPLATE, EVERY_FUNCTION)
    checked = template.resources["Check"].properties["Functions"]
    (policy,) = template.resources["CheckRole"].properties["Policies"]
    rights = {str(one["Action"]): one["Resource"] for one in policy["PolicyDocument"]["Statement"]}
    assert rights.pop("lambda:InvokeFunction") == checked
    assert rights.pop("cloudformation:DescribeStacks") == {"Ref": "AWS::StackId"}
    assert rights == {
        "['logs:CreateLogStream', 'logs:PutLogEvents']": {"Fn::GetAtt": ["CheckLogs", "Arn"]}
    }


@each_case("parameters", [{}, {"Observability": "full", **EVERY_FUNCTION}])
def test_nothing_waits_for_itself(parameters: dict[str, str]) -> None:
    made = translate(TEMPLATE, parameters)["Resources"]
    needs = {name: set(referred_to(body)) & made.keys() for name, body in made.items()}
    while ready := {name for name, needed in needs.items() if not needed & needs.keys()}:
        needs = {name: needed for name, needed in needs.items() if name not in ready}

    assert needs == {}


def referred_to(value: Any) -> Iterator[str]:
    """The names in references, and in DependsOn."""
    if isinstance(value, list):
        for part in value:
            yield from referred_to(part)
    if not isinstance(value, Mapping):
        return
    for key, part in value.items():
        if key == "Ref" and isinstance(part, str):
            yield part
        elif key == "Fn::GetAtt":
            yield part[0] if isinstance(part, list) else part.partition(".")[0]
        elif key == "DependsOn":
            yield from [part] if isinstance(part, str) else part
        elif key == "Fn::Sub" and isinstance(part, str):
            yield from (name.partition(".")[0] for name in re.findall(r"\$\{([^}]+)\}", part))
        else:
            yield from referred_to(part)
