"""`make roll-back`: the versions of one deployment, and aliases that move together or not at
all."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from infra.operate import roll_back
from infra.operate.deploy import Account
from infra.operate.roll_back import COMPLETE, FAILED, UNKNOWN, Alias, Deployment, Found, Refused
from tests.conftest import the_template
from tests.infra.test_deploy import ROOT, STACK_ID, Aws, made, stack_in
from tests.support.cases import each_case

STACK = "duewheel-dev"
LAYER = "arn:aws:lambda:eu-west-1:123456789012:layer:CoreLayer"
VENDOR = "arn:aws:lambda:eu-west-1:123456789012:layer:VendorLayer:3"
FUNCTION = "arn:aws:lambda:eu-west-1:123456789012:function"
API, NOTIFIER = "duewheel-dev-Api", "duewheel-dev-Notifier"


@pytest.fixture
def aws() -> Iterator[Aws]:
    aws = Aws()
    yield aws
    aws.check_all_used()


def version(function: str, number: int, layer: int) -> dict[str, Any]:
    return {
        "FunctionName": function,
        "Version": str(number),
        "LastModified": f"2030-01-{layer:02}T00:00:00.000+0000",
        "Layers": [{"Arn": VENDOR}, {"Arn": f"{LAYER}:{layer}"}],
    }


def event(status: str, physical: str = STACK_ID) -> dict[str, Any]:
    kind = "AWS::CloudFormation::Stack" if physical == STACK_ID else "AWS::Lambda::Version"
    return {
        "StackId": STACK_ID, "EventId": "e", "StackName": STACK, "Timestamp": 0,
        "PhysicalResourceId": physical, "ResourceType": kind, "ResourceStatus": status,
    }  # fmt: skip


def update(end: str, *published: tuple[str, int]) -> list[dict[str, Any]]:
    """The events of one update, the latest first."""
    ended = [event(end)]
    if end == "UPDATE_ROLLBACK_COMPLETE":
        ended.append(event("UPDATE_ROLLBACK_IN_PROGRESS"))
    created = [event("CREATE_COMPLETE", f"{FUNCTION}:{name}:{n}") for name, n in published]
    return [*ended, *created, event("UPDATE_IN_PROGRESS")]


# Deployed: layers 5, 6 (failed once all was published), 7 (failed with one function published), 9.
PUBLISHED = {
    API: [version(API, 1, 5), version(API, 2, 6), version(API, 3, 7), version(API, 4, 9)],
    NOTIFIER: [version(NOTIFIER, 1, 5), version(NOTIFIER, 2, 6), version(NOTIFIER, 3, 9)],
}
EVENTS = [
    *update("UPDATE_COMPLETE", (API, 4), (NOTIFIER, 3)),
    *update("UPDATE_ROLLBACK_COMPLETE", (API, 3)),
    *update("UPDATE_ROLLBACK_COMPLETE", (API, 2), (NOTIFIER, 2)),
    *update("CREATE_COMPLETE", (API, 1), (NOTIFIER, 1)),
]


def played(aws: Aws, live: Mapping[str, int], *, weights: bool = False) -> None:
    def resource(kind: str, logical: str, physical: str) -> dict[str, Any]:
        return {
            "ResourceType": kind, "LogicalResourceId": logical, "PhysicalResourceId": physical,
            "ResourceStatus": "UPDATE_COMPLETE", "LastUpdatedTimestamp": 0,
        }  # fmt: skip

    held = [resource("AWS::Lambda::LayerVersion", "CoreLayer0a1b", f"{LAYER}:9")]
    held += [resource("AWS::Lambda::Alias", f"{f}live", f"{FUNCTION}:{f}:live") for f in live]
    aws.answers("cloudformation", "describe_stacks", stack_in("UPDATE_COMPLETE"))
    aws.answers("cloudformation", "list_stack_resources", {"StackResourceSummaries": held})
    for function, number in live.items():
        seen(aws, function, number, "r1", weights={"4": 0.1} if weights else {})
    for function in sorted(live):
        listed = {"Versions": [{"Version": "$LATEST"}, *PUBLISHED[function]]}
        aws.answers("lambda", "list_versions_by_function", listed, FunctionName=function)
    aws.answers("cloudformation", "describe_stack_events", {"StackEvents": EVENTS})


def seen(
    aws: Aws, function: str, number: int, revision: str, weights: Mapping[str, float] | None = None
) -> None:
    answer: dict[str, Any] = {"FunctionVersion": str(number), "RevisionId": revision}
    if weights:
        answer["RoutingConfig"] = {"AdditionalVersionWeights": weights}
    aws.answers("lambda", "get_alias", answer, FunctionName=function, Name="live")


def moves(aws: Aws, function: str, number: int, revision: str = "r1") -> None:
    request = {"FunctionName": function, "Name": "live", "FunctionVersion": str(number)}
    aws.answers("lambda", "update_alias", {}, **request, RevisionId=revision)


def run(aws: Aws, *, to: int | None = None, only_shows: bool = False) -> None:
    account = Account(aws.client, "eu-west-1")
    roll_back.rolled_back(account, STACK, to=to, only_shows=only_shows)


def test_all_aliases_move_to_the_last_successful_deployment_before(
    aws: Aws, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither the number before nor the versions of a failed update are used."""
    played(aws, {API: 4, NOTIFIER: 3})
    moves(aws, API, 1)
    moves(aws, NOTIFIER, 1)
    run(aws)
    printed = capsys.readouterr().out
    assert "9: published 2030-01-09T00:00:00.000+0000, deployed last, 2 of 2 aliases" in printed
    assert "6: published 2030-01-06T00:00:00.000+0000, its deployment failed, 0 of 2" in printed
    assert "runs deployment 5" in printed
    assert "make roll-back STACK=duewheel-dev TO=9" in printed
    assert "roles, queues" in printed
    assert "docs/decisions/0052" in printed


@pytest.mark.parametrize("live", [{API: 1, NOTIFIER: 3}, {API: 1, NOTIFIER: 1}])
def test_a_repeat_completes_a_roll_back_and_goes_no_further(aws: Aws, live: dict[str, int]) -> None:
    played(aws, live)
    if live[NOTIFIER] == 3:
        moves(aws, NOTIFIER, 1)
    run(aws)


def test_a_roll_back_can_be_undone(aws: Aws) -> None:
    played(aws, {API: 1, NOTIFIER: 1})
    moves(aws, API, 4)
    moves(aws, NOTIFIER, 3)
    run(aws, to=9)


def test_the_deployments_can_be_shown_without_a_change(aws: Aws) -> None:
    played(aws, {API: 4, NOTIFIER: 3}, weights=True)
    run(aws, only_shows=True)


@pytest.mark.parametrize("has_moved", [False, True])
def test_when_one_alias_fails_those_that_moved_are_moved_back(aws: Aws, has_moved: bool) -> None:
    """The failed one is moved back, too, if only its answer was lost."""
    played(aws, {API: 4, NOTIFIER: 3})
    moves(aws, API, 1)
    aws.fails("lambda", "update_alias", "PreconditionFailedException")
    seen(aws, NOTIFIER, 1 if has_moved else 3, "r2")
    if has_moved:
        moves(aws, NOTIFIER, 3, "r2")
    seen(aws, API, 1, "r2")
    moves(aws, API, 4, "r2")
    with pytest.raises(Refused, match="All aliases are where they were"):
        run(aws)


def test_an_alias_that_could_not_be_moved_back_is_reported_with_advice(aws: Aws) -> None:
    played(aws, {API: 4, NOTIFIER: 3})
    moves(aws, API, 1)
    aws.fails("lambda", "update_alias", "AccessDeniedException")
    aws.fails("lambda", "get_alias", "ServiceException")
    aws.fails("lambda", "get_alias", "ServiceException")
    with pytest.raises(Refused) as refused:
        run(aws)
    assert f"{API}:live may be at another version" in str(refused.value)
    assert "Run the same command again" in str(refused.value)
    assert "where they were" not in str(refused.value)


@pytest.mark.parametrize(
    "status", ["UPDATE_IN_PROGRESS", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "ROLLBACK_COMPLETE"]
)
def test_a_roll_back_is_refused_while_a_deployment_is_under_way(aws: Aws, status: str) -> None:
    aws.answers("cloudformation", "describe_stacks", stack_in(status))
    with pytest.raises(Refused, match=status):
        run(aws)


def test_a_roll_back_is_refused_while_a_canary_is_under_way(aws: Aws) -> None:
    played(aws, {API: 1, NOTIFIER: 1}, weights=True)
    with pytest.raises(Refused, match="canary"):
        run(aws)


BOTH = {API: "1", NOTIFIER: "1"}


@each_case(
    ("before", "to", "expected"),
    [
        ([], None, "no versions of a deployment before 9"),
        ([Deployment(5, "", BOTH, FAILED)], None, "no versions of a deployment before 9"),
        ([Deployment(5, "", {API: "1"}, COMPLETE)], None, f"5 has no version of {NOTIFIER}"),
        ([Deployment(5, "", BOTH, UNKNOWN)], None, "TO=5"),
        ([Deployment(5, "", BOTH, COMPLETE)], 4, "deployment 4"),
    ],
)
def test_a_roll_back_is_refused_without_an_earlier_deployment(
    before: list[Deployment], to: int | None, expected: str
) -> None:
    deployed = Deployment(9, "", {API: "4", NOTIFIER: "3"}, COMPLETE)
    aliases = [Alias(API, "live", "4", "r", False), Alias(NOTIFIER, "live", "3", "r", False)]
    found = Found(STACK, 9, {one.number: one for one in (*before, deployed)}, aliases)
    with pytest.raises(Refused, match=expected):
        roll_back.target(found, to)


def test_each_function_of_the_template_has_the_core_layer_and_an_alias() -> None:
    template = the_template()
    layers = [one.logical_id for one in template.of_type("AWS::Lambda::LayerVersion")]
    (core,) = [name for name in layers if name.startswith(roll_back.CORE_LAYER)]
    functions = template.of_type("AWS::Lambda::Function")
    assert all({"Ref": core} in function.properties["Layers"] for function in functions)
    led = [one.properties["FunctionName"]["Ref"] for one in template.of_type("AWS::Lambda::Alias")]
    assert {function.logical_id for function in functions} == set(led)


def test_the_deploy_role_has_the_rights_that_the_docs_name() -> None:
    role = (ROOT / "infra" / "deploy_role.yaml").read_text("utf-8")
    page = (ROOT / "docs" / "operations.md").read_text("utf-8").partition("### Going back")[2]
    for service, names in {
        "cloudformation": ("DescribeStacks", "DescribeStackEvents", "ListStackResources"),
        "lambda": ("GetAlias", "ListVersionsByFunction", "UpdateAlias"),
    }.items():
        assert all(f"- {service}:{name}\n" in role and f"{name}`" in page for name in names)


def test_make_passes_its_variables_to_the_roll_back() -> None:
    printed = made("-n", "roll-back", "STACK=my-timers", "TO=5", "SHOW=yes").stdout
    assert "-m infra.operate.roll_back" in printed
    assert '"my-timers" --to "5" --show' in " ".join(printed.replace("\\\n", " ").split())
    assert "STACK=... is missing" in made("-n", "roll-back").stderr
