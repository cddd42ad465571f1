"""What the protocols expect of queues, schedules, timeouts and settings."""

import re
from pathlib import Path
from typing import Any

import boto3
import pytest

from duewheel.rules.callbacks.aws.registry import AWS_TARGETS
from duewheel.rules.delivery.page_lease import HIDDEN_MS
from duewheel.rules.ingest.message import REMEMBERED_SECONDS
from duewheel.rules.ingest.verdict import (
    LAST_TRY_AFTER_MS,
    REASONS_CHARACTERS_MAX,
    RECEIVES_MAX,
    WAIT_SECONDS_MAX,
)
from duewheel.rules.tasks.idempotency import LEASE_MS
from duewheel.rules.wheel.timing import SKEW_MS
from duewheel.settings import LIVE, Settings, settings_from
from duewheel.workflows.delivery.hold import FAILED_COMES_AFTER_SECONDS
from local.aws.actions import ActionRequest
from local.aws.policies import roles_of
from local.aws.resources import Resources
from local.aws.template import Template, load_template, source_of
from tests.support.cases import each_case

TEMPLATE = Path(__file__).parents[2] / "template.yaml"
SOURCE: dict[str, Any] = source_of(TEMPLATE)
PARAMETERS: dict[str, Any] = SOURCE["Parameters"]
FUNCTIONS = ("api", "scheduler", "notifier", "sweeper", "bulk", "ingest", "stack_timers")
WITHOUT_REQUESTS = ("scheduler", "notifier", "sweeper", "bulk")  # that create tasks
OF_STACK_TIMERS = {"STACK_TIMERS_AS"}
OF_INGEST = {"INGEST_QUEUE_URL", "INGEST_DEAD_LETTER_QUEUE_URL", "INGEST_BUSINESSES"}


def properties_of(template: Template, logical_id: str) -> dict[str, Any]:
    return template.resources[logical_id].properties


def resources_with(emulator: Any, overrides: dict[str, str] | None = None) -> Resources:
    """Resolves references; makes a table or queue only when one is referred to."""
    template = load_template(TEMPLATE, overrides)
    return Resources(template, boto3.client("dynamodb"), boto3.client("sqs"))


@pytest.fixture(scope="module")
def template() -> Template:
    return load_template(TEMPLATE)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_environment_of_a_function_has_every_setting_and_no_other(
    resources: Resources, function: str
) -> None:
    variables = {v for v in resources.environment(function) if not v.startswith("POWERTOOLS_")}

    by_lambda = {"NOTIFIER_FUNCTION"} if function == "notifier" else set()  # its own name
    for_requests = {"OWN_NAMES"} if function in WITHOUT_REQUESTS else set()
    for_messages = OF_INGEST if function != "ingest" else set()
    for_stacks = OF_STACK_TIMERS if function != "stack_timers" else set()
    for_operations = {"BULK_FUNCTION"} if function not in ("api", "sweeper") else set()
    every = {name.upper() for name in Settings.__struct_fields__}
    assert (
        variables == every - by_lambda - for_requests - for_messages - for_stacks - for_operations
    )


def test_defaults_of_template_and_settings_agree(resources: Resources) -> None:
    # Tests have keys, so as to have every function.
    environment = resources.environment("api") | {"AUTH_MODE": "iam"}
    needed = (
        "WHEEL_TABLE",
        "REGISTRY_TABLE",
        "SLICE_QUEUE_URL",
        "SLOW_QUEUE_URL",
        "SECRETS_TABLE",
        "NOTIFIER_FUNCTION",
        "BULK_FUNCTION",
        "STACK_ID",
        "OWN_NAMES",
    )

    assert settings_from(environment) == settings_from({name: environment[name] for name in needed})


@pytest.mark.parametrize("bound", ["MinValue", "MaxValue"])
def test_settings_take_what_the_template_lets_through(emulator: Any, bound: str) -> None:
    values = {name: str(one[bound]) for name, one in PARAMETERS.items() if bound in one}
    assert "RetentionDays" in values
    settings_from(resources_with(emulator, values).environment("api"))


def test_every_parameter_says_what_it_is_for_and_what_it_takes() -> None:
    groups = SOURCE["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]

    assert sorted(name for one in groups for name in one["Parameters"]) == sorted(PARAMETERS)
    for name, declared in PARAMETERS.items():
        assert declared["Description"], name
        assert "Default" in declared, name
        assert {"MinValue", "AllowedValues", "AllowedPattern"} & set(declared), name


def test_visibility_outlives_the_notifier_as_lambda_wants_it_and_the_lease_of_a_release(
    template: Template, resources: Resources
) -> None:
    timeout = properties_of(template, "NotifierFunction")["Timeout"]
    settings = settings_from(resources.environment("api"))

    assert settings.notifier_timeout_seconds == timeout
    for queue in ("SliceQueue", "SlowQueue"):
        visibility = properties_of(template, queue)["VisibilityTimeout"]
        assert timeout < settings.notifier_lives_ms / 1000 < visibility
        assert visibility == FAILED_COMES_AFTER_SECONDS
        assert timeout > HIDDEN_MS / 1000


def test_a_claimed_request_outlives_its_function_by_more_than_clocks_differ() -> None:
    with_queue = load_template(TEMPLATE, {"IngestBusinesses": "*"})
    for function in ("ApiFunction", "IngestFunction"):
        timeout = properties_of(with_queue, function)["Timeout"]
        assert timeout * 1000 + SKEW_MS + 10_000 < LEASE_MS


def test_throttling_alone_makes_no_dead_letters_of_what_a_new_account_works_off(
    template: Template,
) -> None:
    """A hundred thousand tasks of one second, whose calls take all the time there is, and six of an
    account's ten runs at once for them. The others are the scheduler's, twice, and the API's."""
    pages, at_once, a_run = 1_000, 6 * 2, properties_of(template, "NotifierFunction")["Timeout"]
    for queue in ("SliceQueue", "SlowQueue"):
        properties = properties_of(template, queue)
        tries = properties["RedrivePolicy"]["maxReceiveCount"]
        assert pages / at_once * a_run < tries * properties["VisibilityTimeout"]


def test_a_message_that_fails_a_hundred_times_ends_in_the_dead_letter_queue(
    template: Template,
) -> None:
    for queue in ("SliceQueue", "SlowQueue"):
        assert properties_of(template, queue)["RedrivePolicy"] == {
            "deadLetterTargetArn": {"Fn::GetAtt": ["DeadLetterQueue", "Arn"]},
            "maxReceiveCount": 100,
        }


def test_there_is_an_ingest_queue_where_it_is_wanted_and_nothing_of_it_elsewhere() -> None:
    for businesses, is_there in (("orders", True), ("", False)):
        template = load_template(TEMPLATE, {"IngestBusinesses": businesses})
        assert any("Ingest" in name for name in template.resources) == is_there
    assert PARAMETERS["IngestBusinesses"]["Default"] == ""


def test_a_message_comes_back_when_nobody_can_be_at_work_on_it_and_as_often_as_the_rules_say() -> (
    None
):
    template = load_template(TEMPLATE, {"IngestBusinesses": "*"})
    queue = properties_of(template, "IngestMessageQueue")
    timeout = properties_of(template, "IngestFunction")["Timeout"]
    assert timeout + LEASE_MS / 1000 < queue["VisibilityTimeout"]
    assert queue["RedrivePolicy"] == {
        "deadLetterTargetArn": {"Fn::GetAtt": ["IngestDeadLetterQueue", "Arn"]},
        "maxReceiveCount": RECEIVES_MAX,
    }
    assert RECEIVES_MAX <= 1_000, "SQS takes no more"
    assert queue["MaximumMessageSize"] + REASONS_CHARACTERS_MAX + 10_000 < 1_048_576


def test_a_message_is_remembered_for_longer_than_its_queues_keep_it() -> None:
    """By a day in which its sender may send it again, and by another."""
    template = load_template(TEMPLATE, {"IngestBusinesses": "*"})
    for name in ("IngestMessageQueue", "IngestDeadLetterQueue"):
        kept_seconds = properties_of(template, name)["MessageRetentionPeriod"]
        assert kept_seconds + 2 * 86_400 <= REMEMBERED_SECONDS


def test_a_message_that_no_run_was_to_be_had_for_is_given_up_by_its_age_with_a_reason() -> None:
    """While Lambda refuses runs SQS counts all the same what it hands out."""
    template = load_template(TEMPLATE, {"IngestBusinesses": "*"})
    visibility_ms = properties_of(template, "IngestMessageQueue")["VisibilityTimeout"] * 1000
    assert RECEIVES_MAX * visibility_ms > LAST_TRY_AFTER_MS + WAIT_SECONDS_MAX * 1000


def test_ingest_gets_ten_messages_at_once_and_answers_for_each(emulator: Any) -> None:
    resources = resources_with(emulator, {"IngestBusinesses": "a-*, b"})
    (mapping,) = [
        resources.resolve(mapping.properties)
        for mapping in resources.template.of_type("AWS::Lambda::EventSourceMapping")
        if "Ingest" in mapping.logical_id
    ]
    assert mapping["EventSourceArn"] == resources.attribute("IngestMessageQueue", "Arn")
    assert mapping["BatchSize"] == 10
    assert mapping["ScalingConfig"] == {"MaximumConcurrency": 20}
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    settings = settings_from(resources.environment("ingest"))
    assert settings.ingest_businesses == ("a-*", "b")
    assert settings.ingest_queue_url == resources.queue_url("IngestMessageQueue")
    assert settings.ingest_dead_letter_queue_url == resources.queue_url("IngestDeadLetterQueue")


@each_case(
    ("text", "is_good"),
    [("*", True), ("orders-*, shop", True), ("a*", True), ("Orders", False),
     ("*orders", False), ("a,,b", False), ("a*b", False)],
)  # fmt: skip
def test_businesses_of_the_ingest_queue_are_taken_as_settings_take_them(
    emulator: Any, text: str, is_good: bool
) -> None:
    matched = re.fullmatch(PARAMETERS["IngestBusinesses"]["AllowedPattern"], text) is not None
    assert matched == is_good
    if is_good:
        resources = resources_with(emulator, {"IngestBusinesses": text})
        assert settings_from(resources.environment("ingest")).ingest_businesses


def test_notifier_gets_messages_of_both_lanes_at_once_and_answers_for_each(emulator: Any) -> None:
    mappings = mappings_of(resources_with(emulator, {}))
    assert {queue: mapping["BatchSize"] for queue, mapping in mappings.items()} == {
        "SliceQueue": 2,
        "SlowQueue": 1,
    }
    for mapping in mappings.values():
        assert "ProvisionedPollerConfig" not in mapping
        assert "MaximumBatchingWindowInSeconds" not in mapping
        assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]


def test_notifiers_are_bounded_where_a_bound_is_set_and_else_by_lambda(emulator: Any) -> None:
    """Under a bound Lambda would poll an idle queue more often. An empty value takes one back."""
    for parameters, expected in (
        ({}, {}),
        ({"NotifierConcurrency": "30"}, {"MaximumConcurrency": "30"}),
    ):
        mappings = mappings_of(resources_with(emulator, parameters))
        for queue in ("SliceQueue", "SlowQueue"):
            assert mappings[queue]["ScalingConfig"] == expected


def test_a_bound_that_lambda_refuses_is_refused_before_anything_is_changed() -> None:
    (assertion,) = source_of(TEMPLATE)["Rules"]["BoundsAreTaken"]["Assertions"]
    (refused,) = assertion["Assert"]["Fn::Not"]
    assert refused == {"Fn::Equals": [{"Ref": "NotifierConcurrency"}, "1"]}


def mappings_of(resources: Resources) -> dict[str, Any]:
    """By queue."""
    return {
        mapping.properties["EventSourceArn"]["Fn::GetAtt"][0]: resources.resolve(mapping.properties)
        for mapping in resources.template.of_type("AWS::Lambda::EventSourceMapping")
    }


def test_pollers_that_stay_come_and_go_by_a_mapping_of_their_own(emulator: Any) -> None:
    """Of the others nothing changes, so there is nothing that an update would have to take back."""
    with_and_without = [
        {
            mapping.logical_id: resources.resolve(mapping.properties)
            for mapping in resources.template.of_type("AWS::Lambda::EventSourceMapping")
        }
        for resources in (resources_with(emulator, {"ProvisionedPollers": n}) for n in ("20", "0"))
    ]
    mappings, without = with_and_without
    added = mappings.pop("ProvisionedSlices")

    assert mappings == without
    pollers = added["ProvisionedPollerConfig"]
    assert (pollers["MinimumPollers"], pollers["MaximumPollers"]) == ("20", 400), (
        "equal never scale"
    )
    pattern = source_of(TEMPLATE)["Parameters"]["ProvisionedPollers"]["AllowedPattern"]
    assert not re.fullmatch(pattern, "400")
    beside = mappings["NotifierFunctionSlices"]
    assert added.keys() - {"ProvisionedPollerConfig"} == beside.keys() - {"ScalingConfig"}
    for name in ("EventSourceArn", "BatchSize", "FunctionResponseTypes"):
        assert added[name] == beside[name]
    assert added["FunctionName"] != beside["FunctionName"], "of one alias Lambda takes one mapping"


def test_pollers_that_stay_invoke_the_version_that_is_live() -> None:
    template = load_template(TEMPLATE, {"ProvisionedPollers": "20"})
    live, provisioned = (
        properties_of(template, name) for name in ("NotifierFunctionAliaslive", "ProvisionedAlias")
    )
    assert live.pop("Name") != provisioned.pop("Name")
    assert live == provisioned


def test_chain_of_pages_is_not_cut_as_a_loop(template: Template) -> None:
    assert properties_of(template, "NotifierFunction")["RecursiveLoop"] == "Allow"


def test_a_task_may_renew_itself_by_the_ingest_queue_as_often_as_it_likes() -> None:
    """Queue, ingest, queue, notifier, the receiver's function, and the queue again: by short delays
    no table comes in between, and Lambda would stop either function after some sixteen rounds."""
    template = load_template(TEMPLATE, {"IngestBusinesses": "*"})
    by_queues = {
        mapping.properties["FunctionName"]["Ref"]
        for mapping in template.of_type("AWS::Lambda::EventSourceMapping")
    }
    assert by_queues == {"NotifierFunctionAliaslive", "IngestFunctionAliaslive"}
    for name in by_queues:
        function = properties_of(template, name)["FunctionName"]["Ref"]
        assert properties_of(template, function).get("RecursiveLoop") == "Allow", name


def test_what_lambda_has_accepted_for_the_notifier_it_tries_again(template: Template) -> None:
    [config] = [
        config.properties
        for config in template.of_type("AWS::Lambda::EventInvokeConfig")
        if config.properties["FunctionName"] == {"Ref": "NotifierFunction"}
    ]

    assert config["MaximumRetryAttempts"] == 2
    assert config["MaximumEventAgeInSeconds"] == 21_600


def test_scheduled_functions_run_each_minute_and_a_late_or_failed_run_is_not_made_up_for(
    template: Template,
) -> None:
    once = {"MaximumRetryAttempts": 0, "MaximumEventAgeInSeconds": 60}
    rules = [rule.properties for rule in template.of_type("AWS::Events::Rule")]
    invokes = [
        config.properties
        for config in template.of_type("AWS::Lambda::EventInvokeConfig")
        if config.properties["FunctionName"] != {"Ref": "NotifierFunction"}
    ]
    scheduled = {target["Arn"]["Ref"] for rule in rules for target in rule["Targets"]}

    assert scheduled == {"SchedulerFunctionAliaslive", "SweeperFunctionAliaslive"}
    at_will = {"BulkFunctionAliaslive"}  # the sweeper invokes it again
    assert scheduled | at_will == {f"{one['FunctionName']['Ref']}Aliaslive" for one in invokes}
    assert {config["Qualifier"] for config in invokes} == {LIVE}
    for rule in rules:
        assert rule["ScheduleExpression"] == "rate(1 minute)"
        assert [target["RetryPolicy"] for target in rule["Targets"]] == [once]
    for config in invokes:
        assert once.items() <= config.items()


@pytest.mark.parametrize(
    ("choice", "indexes"),
    [
        ("on", {"dead_by_business", "by_business", "by_timer"}),
        ("off", {"dead_by_business", "by_timer"}),
    ],
)
def test_list_index_is_there_when_it_is_on(emulator: Any, choice: str, indexes: set[str]) -> None:
    resources = resources_with(emulator, {"ListIndex": choice})
    wheel = resources.resolve(properties_of(resources.template, "Wheel"))
    keys = [wheel["KeySchema"], *(i["KeySchema"] for i in wheel["GlobalSecondaryIndexes"])]

    assert {index["IndexName"] for index in wheel["GlobalSecondaryIndexes"]} == indexes
    assert {a["AttributeName"] for a in wheel["AttributeDefinitions"]} == {
        key["AttributeName"] for schema in keys for key in schema
    }
    for index in wheel["GlobalSecondaryIndexes"]:
        assert index["Projection"] == {"ProjectionType": "KEYS_ONLY"}


def test_without_targets_the_notifier_may_reach_none(emulator: Any) -> None:
    """A statement with no resource in it would not even be a policy."""
    resources = resources_with(emulator, {})
    policy = resources.resolve(properties_of(resources.template, "NotifierCalls"))
    allowed = [s for s in policy["PolicyDocument"]["Statement"] if s["Effect"] == "Allow"]
    assert [one["Resource"] for one in allowed] == [resources.ref("NotifierFunctionAliaslive")]


def test_the_list_of_targets_gives_the_notifier_a_right_to_each_and_tells_the_functions(
    emulator: Any,
) -> None:
    arns = [f"arn:aws:{target.service}:us-east-1:123456789012:a-*" for target in AWS_TARGETS]
    resources = resources_with(emulator, {"TargetArns": ",".join(arns)})
    notifier = roles_of(resources)["notifier"]
    given = {(right.action, right.resource) for right in notifier.rights()}
    assert {(action, arn) for action, arn in given if arn in arns} == {
        (target.action, arn) for target, arn in zip(AWS_TARGETS, arns, strict=True)
    }
    for target, arn in zip(AWS_TARGETS, arns, strict=True):
        assert notifier.right_to(ActionRequest(target.action, arn.replace("*", "1")))
        assert not notifier.right_to(ActionRequest(target.action, arn.replace("a-*", "b")))
    for function in ("api", "notifier"):
        environment = {"AWS_LAMBDA_FUNCTION_NAME": "itself", **resources.environment(function)}
        allowed = settings_from(environment).allowed_targets
        assert allowed.arns == tuple(arns)


@each_case("service", [target.service for target in AWS_TARGETS])
def test_the_list_of_targets_takes_arns_of_their_services_and_nothing_else(service: str) -> None:
    pattern = re.compile(PARAMETERS["TargetArns"]["AllowedPattern"])
    one = f"arn:aws:{service}:us-east-1:123456789012:a:*"
    for good in ("", one, f"{one},{one}", f"arn:aws-cn:{service}:*:*:*"):
        assert pattern.fullmatch(good), good
    for bad in ("*", "a", f"{one}, {one}", f"{one},", "arn:aws:s3:::bucket", f"arn:aws:{service}"):
        assert not pattern.fullmatch(bad), bad
