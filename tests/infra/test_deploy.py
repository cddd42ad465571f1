"""`make deploy`: its parameters, its refusals, and its advice about account and stack."""

import json
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.handlers import BUILTIN_HANDLERS
from botocore.stub import Stubber

from infra.operate import deploy, sam_with_triggers
from infra.operate import deploy_advice as advice
from infra.operate.deploy_parameters import (
    WrongParameters,
    as_arguments,
    chosen,
    effective,
    in_command,
    options_of,
)
from infra.operate.kept_tables import template_of
from local.aws.template import load_template, source_of
from tests.support.cases import each_case

ROOT = Path(__file__).parents[2]
TEMPLATE: dict[str, Any] = source_of(ROOT / "template.yaml")
DECLARED: dict[str, Any] = TEMPLATE["Parameters"]
SAMCONFIG = (ROOT / "samconfig.toml").read_text("utf-8")
DEFAULTS = effective(DECLARED, {}, {})
STACK_ID = "arn:aws:cloudformation:eu-west-1:123456789012:stack/duewheel-dev/1"
TOPIC = "arn:aws:sns:eu-west-1:123456789012:alarms"
AGAIN = "make deploy ENV=dev"
OUTPUTS = {"Version": "1.2.3", "ApiUrl": "https://api", "ConsoleUrl": "https://api/console"}


class Aws:
    """Clients whose answers are queued, and checked against the models of the services."""

    def __init__(self) -> None:
        self._clients: dict[str, Any] = {}
        self._stubs: dict[str, Stubber] = {}

    def answers(
        self, service: str, operation: str, answer: Mapping[str, Any], **request: Any
    ) -> None:
        self._stub(service).add_response(operation, answer, request or None)

    def fails(self, service: str, operation: str, code: str, message: str = "") -> None:
        self._stub(service).add_client_error(operation, code, message)

    def client(self, service: str) -> Any:
        self._stub(service)
        return self._clients[service]

    def _stub(self, service: str) -> Stubber:
        if service not in self._stubs:
            self._clients[service] = boto3.client(service, region_name="eu-west-1")
            self._stubs[service] = Stubber(self._clients[service])
            self._stubs[service].activate()
        return self._stubs[service]

    def check_all_used(self) -> None:
        for stub in self._stubs.values():
            stub.assert_no_pending_responses()


@pytest.fixture
def aws() -> Iterator[Aws]:
    aws = Aws()
    yield aws
    aws.check_all_used()


@pytest.fixture
def sam(tmp_path: Path) -> Path:
    """Records its arguments instead of the real SAM CLI."""
    program = tmp_path / "sam"
    program.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path / "arguments"}\n'
        f'printf "%s" "$ROLLBACK_CONFIGURATION" > {tmp_path / "triggers"}\n'
    )
    program.chmod(0o755)
    return program


def arguments_of(sam: Path) -> list[str]:
    written = sam.with_name("arguments")
    return written.read_text().splitlines() if written.exists() else []


def options(
    sam: Path,
    *,
    parameters: str = "",
    replace: bool = False,
    tables: str = "",
    environment: str = "dev",
) -> deploy.Options:
    options = options_of(SAMCONFIG, "dev")
    return deploy.Options(
        environment=environment,
        stack="duewheel-dev",
        template=ROOT / "template.yaml",
        parameters=chosen(options, "", parameters, DECLARED),
        sam=(str(sam),),
        watch_minutes=10,
        again=AGAIN,
        is_failed_replaced=replace,
        tables=in_command(tables),
        asks_before_changes=False,
    )


def stack_in(status: str, **parameters: str) -> dict[str, Any]:
    return {
        "Stacks": [
            {
                "StackName": "duewheel-dev",
                "StackId": STACK_ID,
                "CreationTime": 0,
                "StackStatus": status,
                "Parameters": [
                    {"ParameterKey": name, "ParameterValue": value}
                    for name, value in {**DEFAULTS, **parameters}.items()
                ],
                "Outputs": [
                    {"OutputKey": name, "OutputValue": value} for name, value in OUTPUTS.items()
                ],
            }
        ]
    }


def resource(kind: str, name: str, status: str = "CREATE_COMPLETE") -> dict[str, Any]:
    return {
        "LogicalResourceId": name,
        "PhysicalResourceId": f"duewheel-dev-{name}",
        "ResourceType": kind,
        "ResourceStatus": status,
        "LastUpdatedTimestamp": 0,
    }


def no_stack(aws: Aws) -> None:
    aws.fails("cloudformation", "describe_stacks", "ValidationError", "duewheel-dev does not exist")


def limit(aws: Aws, concurrency: int) -> None:
    account = {"ConcurrentExecutions": concurrency}
    aws.answers("lambda", "get_account_settings", {"AccountLimit": account})


def run(aws: Aws, wanted: deploy.Options) -> int:
    return deploy.deployed(deploy.Account(aws.client, "eu-west-1"), wanted, TEMPLATE)


def test_a_later_source_of_a_parameter_wins() -> None:
    options = {"parameter_overrides": ["AuthMode=keys", "ListIndex=off", "RetentionDays=1"]}
    values = chosen(options, "# mine\nListIndex=on\n\nRetentionDays=2", "RetentionDays=3", DECLARED)
    assert values == {"AuthMode": "keys", "ListIndex": "on", "RetentionDays": "3"}


def test_a_parameter_that_is_not_named_keeps_the_value_of_the_stack() -> None:
    was = {"IamDefault": "admin", "AuthMode": "iam", "PageSize": "50"}
    will_be = effective(DECLARED, was, {"AuthMode": "keys"})
    assert (will_be["IamDefault"], will_be["AuthMode"]) == ("admin", "keys")
    assert "PageSize" not in will_be, "it is no parameter any more"


@each_case(
    ("given", "expected"),
    [
        ("AuthMod=keys", "no parameter AuthMod"),
        ("PageSize=50", "no parameter PageSize"),
        ("AuthMode=off", "one of iam, keys"),
        ("RetentionDays=0", "from 1 to 3650"),
        ("RetentionDays=many", "from 1 to 3650"),
        ("SubnetIds=vpc-1", "subnet-0123"),
        ('AlarmEmail=a@b"', "AlarmEmail does not take"),
        ("AuthMode", "not of the form"),
    ],
)
def test_a_parameter_that_the_template_does_not_take_is_refused(given: str, expected: str) -> None:
    with pytest.raises(WrongParameters, match=expected):
        chosen({}, given, "", DECLARED)


def test_an_unknown_environment_is_refused_with_the_names_of_the_others() -> None:
    with pytest.raises(WrongParameters, match="dev, staging, prod"):
        options_of(SAMCONFIG, "test")


def test_an_empty_value_and_one_with_blanks_reach_sam_unchanged() -> None:
    """The SAM CLI refuses `Name=`, and ends a value at a blank."""
    values = in_command('SubnetIds= AllowedPrivateCidrs="10.0.0.0/8, fd00::/8"')
    assert as_arguments(values) == ['SubnetIds=""', 'AllowedPrivateCidrs="10.0.0.0/8, fd00::/8"']


def made(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["make", *words], cwd=ROOT, capture_output=True, text=True, check=False)


def test_make_passes_its_variables_to_the_deployment() -> None:
    """With `-n`, make prints the commands that it would run."""
    given = ("ENV=dev", "STACK=my-timers", "PARAMETERS=ListIndex=off AuthMode=keys")
    command = made("-n", "deploy", *given, "REPLACE_FAILED=yes").stdout.replace("\\\n", " ")
    (line,) = [one for one in command.splitlines() if "-m infra.operate.deploy" in one]
    words = shlex.split(line)
    options = dict(zip(words[4::2], words[5::2], strict=True))
    assert words[3] == "dev"
    assert options["--stack"] == "my-timers"
    assert options["--watch-minutes"] == "10"
    assert options["--parameters"] == "ListIndex=off AuthMode=keys"
    assert options["--replace-failed"] == "yes"
    assert options["--again"] == "make deploy ENV=dev STACK=my-timers"


def test_without_an_environment_make_names_them_before_it_builds() -> None:
    refused = made("deploy")
    assert refused.returncode != 0
    assert "make deploy ENV=dev" in refused.stderr
    assert "sam" not in refused.stdout


def test_a_first_deployment_asks_no_question_and_sam_writes_no_file(aws: Aws, sam: Path) -> None:
    no_stack(aws)
    limit(aws, 1_000)
    no_stack(aws)
    assert run(aws, options(sam)) == 0

    arguments = arguments_of(sam)
    assert arguments[0] == "deploy"
    assert "--no-confirm-changeset" in arguments
    assert not {"--guided", "-g", "--save-params"} & set(arguments)
    assert arguments[arguments.index("--stack-name") + 1] == "duewheel-dev"
    assert 'IamDefault="admin"' in arguments, "dev gives its first caller the admin right"


def test_only_the_environment_is_required(sam: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        deploy, "deployed", lambda account, wanted, template: len(wanted.parameters)
    )
    template = str(ROOT / "template.yaml")
    given = ["dev", "--template", template, "--sam", str(sam), "--again", AGAIN]
    given += ["--watch-minutes", "10"]
    assert deploy.main(given) == len(options_of(SAMCONFIG, "dev")["parameter_overrides"])
    assert deploy.main([*given, "--parameters", "AuthMod=keys"]) == deploy.REFUSED


@each_case(
    ("status", "helps"),
    [
        ("ROLLBACK_COMPLETE", "REPLACE_FAILED=yes"),
        ("ROLLBACK_FAILED", "REPLACE_FAILED=yes"),
        ("CREATE_FAILED", "REPLACE_FAILED=yes"),
        ("DELETE_FAILED", "delete-stack"),
        ("UPDATE_ROLLBACK_FAILED", "continue-update-rollback"),
        ("UPDATE_IN_PROGRESS", "when that is over"),
    ],
)
def test_a_stack_that_cannot_be_updated_is_refused_with_advice(status: str, helps: str) -> None:
    assert helps in "\n".join(advice.obstacle(status, "duewheel-dev", AGAIN))


@each_case(
    "status",
    ["CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "REVIEW_IN_PROGRESS"],
)
def test_a_stack_that_can_be_updated_is_accepted(status: str) -> None:
    assert advice.obstacle(status, "duewheel-dev", AGAIN) == []


def test_a_failed_first_creation_is_left_alone_and_its_cause_is_shown(aws: Aws, sam: Path) -> None:
    aws.answers("cloudformation", "describe_stacks", stack_in("ROLLBACK_COMPLETE"))
    events = [("ApiStage", "cancelled"), ("AccessLogs", "the policy is full")]  # the latest first
    shown = [
        {
            "StackId": STACK_ID, "EventId": name, "StackName": "duewheel-dev", "Timestamp": 0,
            "LogicalResourceId": name, "ResourceStatus": "CREATE_FAILED",
            "ResourceStatusReason": reason,
        }
        for name, reason in events
    ]  # fmt: skip
    aws.answers("cloudformation", "describe_stack_events", {"StackEvents": shown})
    with pytest.raises(deploy.Stopped) as stopped:
        run(aws, options(sam))
    assert "AccessLogs: the policy is full" in str(stopped.value)
    assert f"{AGAIN} REPLACE_FAILED=yes" in str(stopped.value)
    assert arguments_of(sam) == []


def test_a_failed_first_creation_is_deleted_on_request(
    aws: Aws, sam: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = resource("AWS::DynamoDB::Table", "Wheel", "DELETE_FAILED")
    kept = resource("AWS::DynamoDB::Table", "Secrets", "DELETE_SKIPPED")
    held = {"StackResourceSummaries": [table, kept]}
    aws.answers("cloudformation", "describe_stacks", stack_in("ROLLBACK_FAILED"))
    aws.answers("cloudformation", "list_stack_resources", held)
    protected = {"Table": {"DeletionProtectionEnabled": True, "TableStatus": "ACTIVE"}}
    aws.answers("dynamodb", "describe_table", protected)
    aws.answers(
        "dynamodb", "update_table", {},
        TableName="duewheel-dev-Wheel", DeletionProtectionEnabled=False,
    )  # fmt: skip
    aws.answers("dynamodb", "describe_table", protected)
    aws.answers("cloudformation", "delete_stack", {}, StackName=STACK_ID)
    aws.answers("cloudformation", "describe_stacks", stack_in("DELETE_COMPLETE"))
    aws.answers("cloudformation", "list_stack_resources", held)
    limit(aws, 1_000)
    no_stack(aws)
    assert run(aws, options(sam, replace=True)) == 0
    assert "AWS::DynamoDB::Table duewheel-dev-Secrets" in capsys.readouterr().out
    assert arguments_of(sam)[0] == "deploy"


@pytest.mark.parametrize("status", ["DELETE_FAILED", "UPDATE_ROLLBACK_FAILED"])
def test_a_stack_that_was_in_use_is_never_deleted(aws: Aws, sam: Path, status: str) -> None:
    aws.answers("cloudformation", "describe_stacks", stack_in(status))
    with pytest.raises(deploy.Stopped):
        run(aws, options(sam, replace=True))


@each_case(
    ("limit", "parameters", "expected"),
    [
        (1_000, {}, []),
        (10, {}, ["NotifierConcurrency=3,", "L-B99A9384"]),
        (400, {}, ["at most 400", "may take all", "NotifierConcurrency=198,"]),
        (400, {"NotifierConcurrency": "198"}, []),
        (400, {"NotifierConcurrency": "199"}, ["may take 398", "--desired-value 1000"]),
        (1_000, {"NotifierConcurrency": "600"}, ["may take 1200", "--desired-value 1300"]),
    ],
)
def test_a_deployment_compares_the_accounts_concurrency_with_the_stack(
    limit: int, parameters: dict[str, str], expected: list[str]
) -> None:
    lines = advice.concurrency(limit, "eu-west-1", {**DEFAULTS, **parameters}, "duewheel-dev")
    text = "\n".join(lines)
    assert all(each in text for each in expected)
    assert bool(lines) == bool(expected)


def test_a_deployment_works_without_the_right_to_read_the_account(
    aws: Aws, sam: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    no_stack(aws)
    aws.fails("lambda", "get_account_settings", "AccessDeniedException")
    no_stack(aws)
    assert run(aws, options(sam)) == 0
    assert "concurrency of Lambda could not be looked up" in capsys.readouterr().out


@each_case(
    ("parameters", "expected"),
    [
        ({}, "put IamDefault=admin into duewheel-dev.parameters"),
        ({"IamDefault": "write"}, "has the right write"),
        ({"AuthMode": "keys"}, "make admin-key STACK=duewheel-dev"),
    ],
)
def test_a_deployment_prints_the_permitted_callers_and_advice_if_there_are_none(
    parameters: dict[str, str], expected: str
) -> None:
    assert expected in "\n".join(advice.access({**DEFAULTS, **parameters}, "duewheel-dev"))


def watched(aws: Aws, topics: dict[str, list[str]]) -> None:
    held = [resource("AWS::CloudWatch::Alarm", f"{name}Alarm") for name in topics]
    aws.answers("cloudformation", "list_stack_resources", {"StackResourceSummaries": held})
    alarms = [
        {"AlarmName": f"duewheel-dev-{name}Alarm", "AlarmActions": each, "ActionsEnabled": True}
        for name, each in topics.items()
    ]
    aws.answers("cloudwatch", "describe_alarms", {"MetricAlarms": alarms})


def tables_are(aws: Aws, *, protected: bool) -> None:
    tables = [resource("AWS::DynamoDB::Table", name) for name in ("Wheel", "Registry")]
    aws.answers("cloudformation", "list_stack_resources", {"StackResourceSummaries": tables})
    for _ in tables:
        described = {"Table": {"DeletionProtectionEnabled": protected}}
        aws.answers("dynamodb", "describe_table", described)


def test_the_tables_are_protected_from_deletion_after_the_deployment(
    aws: Aws, sam: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Set each time, since CloudFormation does not change properties that the template does not
    name."""
    account = deploy.Account(aws.client, "eu-west-1")
    tables = [resource("AWS::DynamoDB::Table", name) for name in ("Wheel", "Registry")]
    aws.answers("cloudformation", "list_stack_resources", {"StackResourceSummaries": tables})
    for name in ("duewheel-dev-Wheel", "duewheel-dev-Registry"):
        aws.answers("dynamodb", "describe_table", {"Table": {}}, TableName=name)
        aws.answers(
            "dynamodb", "update_table", {}, TableName=name, DeletionProtectionEnabled=True
        )  # fmt: skip
    assert len(deploy._protected(account, "duewheel-dev")) == 2
    tables_are(aws, protected=True)
    assert deploy._protected(account, "duewheel-dev") == []


@pytest.mark.parametrize(
    ("environment", "is_protected", "calls"),
    [("prod", False, 1), ("prod", True, 0), ("dev", False, 0), ("staging", False, 0)],
)
def test_the_stack_of_prod_is_protected_from_deletion(
    aws: Aws,
    sam: Path,
    capsys: pytest.CaptureFixture[str],
    environment: str,
    is_protected: bool,
    calls: int,
) -> None:
    made = stack_in("CREATE_COMPLETE")
    made["Stacks"][0]["EnableTerminationProtection"] = is_protected
    nothing: dict[str, Any] = {"StackResourceSummaries": []}
    no_stack(aws)
    limit(aws, 1_000)
    aws.answers("cloudformation", "describe_stacks", made)
    for _ in range(2):
        aws.answers("cloudformation", "list_stack_resources", nothing)
    for _ in range(calls):
        aws.answers(
            "cloudformation", "update_termination_protection", {},
            StackName="duewheel-dev", EnableTerminationProtection=True,
        )  # fmt: skip
    aws.answers("cloudformation", "list_stack_resources", nothing)
    assert run(aws, options(sam, environment=environment)) == 0
    said = "duewheel-dev is protected from deletion now." in capsys.readouterr().out
    assert said == bool(calls)


TABLES = {"Wheel": "old-wheel", "Registry": "old-registry", "Secrets": "old-secrets"}
KEPT = " ".join(f"{name}={table}" for name, table in TABLES.items())


def test_tables_of_a_deleted_stack_are_imported_before_the_rest_is_deployed(
    aws: Aws, sam: Path
) -> None:
    no_stack(aws)
    made = {"Id": "arn:aws:cloudformation:eu-west-1:1:changeSet/kept-tables/1", "StackId": STACK_ID}
    aws.answers("cloudformation", "create_change_set", made)
    aws.answers("cloudformation", "describe_change_set", {"Status": "CREATE_COMPLETE"})
    aws.answers("cloudformation", "execute_change_set", {}, ChangeSetName=made["Id"])
    aws.answers("cloudformation", "describe_stacks", stack_in("IMPORT_COMPLETE"))
    aws.answers("cloudformation", "describe_stacks", stack_in("IMPORT_COMPLETE"))
    limit(aws, 1_000)
    aws.answers("cloudformation", "list_stack_resources", {"StackResourceSummaries": []})
    aws.fails("cloudformation", "describe_stacks", "AccessDenied")
    assert run(aws, options(sam, tables=KEPT)) == 0
    assert arguments_of(sam)[0] == "deploy"


def test_what_is_imported_are_the_tables_of_the_template_and_nothing_that_they_do_not_need() -> (
    None
):
    """With the same indexes: else the deployment would make them once more, which fails."""
    imported = template_of(TEMPLATE)
    assert set(imported["Resources"]) == set(TABLES)
    for name, table in imported["Resources"].items():
        assert table["DeletionPolicy"] == "Retain", "or it could not be imported"
        declared = TEMPLATE["Resources"][name]["Properties"]
        assert {**table["Properties"], "ResourcePolicy": None} == {
            **declared,
            "ResourcePolicy": None,
        }
    assert "GetAtt" not in json.dumps(imported)
    assert len(json.dumps(imported)) < 51_200, (
        "CloudFormation takes no longer template in a request"
    )


def test_tables_are_not_imported_into_a_stack_that_has_some(aws: Aws, sam: Path) -> None:
    aws.answers("cloudformation", "describe_stacks", stack_in("UPDATE_COMPLETE"))
    with pytest.raises(deploy.Stopped, match="tables of its own"):
        run(aws, options(sam, tables=KEPT))


def test_all_tables_are_imported_or_none(aws: Aws, sam: Path) -> None:
    no_stack(aws)
    with pytest.raises(deploy.Stopped, match="each of Registry, Secrets, Wheel"):
        run(aws, options(sam, tables="Wheel=old-wheel"))
    assert arguments_of(sam) == []


def test_what_an_early_validation_refused_is_shown(
    aws: Aws, sam: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sam.write_text("#!/bin/sh\nexit 1\n")
    event = {
        "EventType": "VALIDATION_ERROR",
        "OperationId": "2",
        "LogicalResourceId": "AccessLogs",
        "ValidationName": "NAME_CONFLICT_VALIDATION",
        "ValidationPath": "/Resources/AccessLogs/Properties/LogGroupName",
        "ValidationStatusReason": "It exists already.",
    }
    before = {**event, "OperationId": "1", "ValidationStatusReason": "Of the last try."}
    no_stack(aws)
    limit(aws, 1_000)
    failed = {"StackName": "duewheel-dev", "Filters": {"FailedEvents": True}}
    found = {"OperationEvents": [event, {**event, "EventType": "STACK_EVENT"}, before]}
    aws.answers("cloudformation", "describe_events", found, **failed)
    assert run(aws, options(sam)) == 1
    printed = capsys.readouterr().out
    assert "AccessLogs /Resources/AccessLogs/Properties/LogGroupName: It exists already." in printed
    assert printed.count("Refused before any change") == 1


def deployed_over(aws: Aws, sam: Path, capsys: pytest.CaptureFixture[str]) -> str:
    before = capsys.readouterr()
    assert before.out == ""
    assert run(aws, options(sam)) == 0
    return str(capsys.readouterr().out)


# ---------------------------------------------------------------- what undoes an update


def alarm_arn(name: str) -> str:
    return f"arn:aws:cloudwatch:eu-west-1:123456789012:alarm:duewheel-dev-{name}"


def alarms_are(aws: Aws, *names: str, is_on: tuple[str, ...] = ()) -> None:
    held = [resource("AWS::CloudWatch::Alarm", name) for name in (*names, "DeadLettersAlarm")]
    aws.answers("cloudformation", "list_stack_resources", {"StackResourceSummaries": held})
    described = [
        {
            "AlarmName": f"duewheel-dev-{name}",
            "AlarmArn": alarm_arn(name),
            "StateValue": "ALARM" if name in is_on else "OK",
        }
        for name in names
    ]
    physical = [f"duewheel-dev-{name}" for name in names]
    aws.answers("cloudwatch", "describe_alarms", {"MetricAlarms": described}, AlarmNames=physical)


def set_triggers(sam: Path) -> Any:
    return json.loads(sam.with_name("triggers").read_text() or "null")


def updated(
    aws: Aws,
    sam: Path,
    observability: str,
    *alarms: str,
    is_on: tuple[str, ...] = (),
    **parameters: str,
) -> None:
    """The deployment ends without a look at its result, for which the credentials have no right."""
    before = stack_in("UPDATE_COMPLETE", Observability=observability)
    aws.answers("cloudformation", "describe_stacks", before)
    limit(aws, 1_000)
    alarms_are(aws, *alarms, is_on=is_on)
    given = " ".join(f"{name}={value}" for name, value in parameters.items())
    wanted = options(sam, parameters=given)
    aws.fails("cloudformation", "describe_stacks", "AccessDenied")
    assert run(aws, wanted) == 0


def test_an_update_is_undone_by_the_alarms_of_functions_lag_and_api_for_ten_minutes(
    aws: Aws, sam: Path
) -> None:
    updated(aws, sam, "full", *deploy.TRIGGERS)
    assert set_triggers(sam) == {
        "RollbackTriggers": [
            {"Arn": alarm_arn(name), "Type": "AWS::CloudWatch::Alarm"}
            for name in sorted(deploy.TRIGGERS)
        ],
        "MonitoringTimeInMinutes": 10,
    }


def test_alarms_that_this_update_may_take_away_do_not_undo_it(aws: Aws, sam: Path) -> None:
    """CloudFormation fails an update that misses one of its alarms."""
    updated(aws, sam, "full", *deploy.ALWAYS_THERE, Observability="off")
    named = {each["Arn"] for each in set_triggers(sam)["RollbackTriggers"]}
    assert named == {alarm_arn(name) for name in deploy.ALWAYS_THERE}


def test_an_alarm_that_is_on_already_does_not_undo_the_update_that_ends_it(
    aws: Aws, sam: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    usual = DEFAULTS["Observability"]
    updated(aws, sam, usual, "RescuedAlarm", "DamageAlarm", is_on=("DamageAlarm",))
    assert (
        "On already, so that they do not undo this update: DamageAlarm." in capsys.readouterr().out
    )
    (trigger,) = set_triggers(sam)["RollbackTriggers"]
    assert trigger["Arn"] == alarm_arn("RescuedAlarm")


def test_a_first_creation_has_no_triggers(aws: Aws, sam: Path) -> None:
    """Its alarms are not there yet."""
    no_stack(aws)
    limit(aws, 1_000)
    no_stack(aws)
    assert run(aws, options(sam)) == 0
    assert set_triggers(sam) is None


def test_the_triggers_are_five_alarms_of_the_templates_two_of_them_in_every_stack() -> None:
    def alarms(name: str) -> set[str]:
        resources = source_of(ROOT / name)["Resources"].items()
        return {one for one, body in resources if body["Type"] == "AWS::CloudWatch::Alarm"}

    always = load_template(ROOT / "template.yaml", {"Observability": "off"}).resources
    assert len(deploy.TRIGGERS) == 5, "CloudFormation takes no more"
    assert set(deploy.TRIGGERS) <= alarms("template.yaml") | alarms("infra/observability.yaml")
    assert set(deploy.ALWAYS_THERE) <= set(always)
    assert set(deploy.TRIGGERS) - set(deploy.ALWAYS_THERE) <= alarms("infra/observability.yaml")


def test_the_change_set_of_the_sam_cli_carries_the_triggers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The SAM CLI makes clients of its own, each by a session of the SDK."""
    wanted = {"RollbackTriggers": [], "MonitoringTimeInMinutes": 10}
    asked = {"StackName": "duewheel-dev", "ChangeSetName": "one"}
    monkeypatch.setattr(sam_with_triggers, "BUILTIN_HANDLERS", handlers := list(BUILTIN_HANDLERS))
    monkeypatch.setattr("botocore.session.handlers.BUILTIN_HANDLERS", handlers)
    sam_with_triggers.register()
    client = boto3.Session().client("cloudformation", region_name="eu-west-1")
    with Stubber(client) as stub:
        stub.add_response("create_change_set", {}, {**asked, "RollbackConfiguration": wanted})
        monkeypatch.setenv(sam_with_triggers.VARIABLE, json.dumps(wanted))
        client.create_change_set(**asked)
        stub.add_response("create_change_set", {}, asked)
        monkeypatch.delenv(sam_with_triggers.VARIABLE)
        client.create_change_set(**asked)


@each_case(
    ("configuration", "expected"),
    [
        ({}, "the next `make deploy` sets them"),
        ({"RollbackTriggers": [], "MonitoringTimeInMinutes": 0}, "the next `make deploy`"),
        (
            {"RollbackTriggers": [{"Arn": alarm_arn("X")}], "MonitoringTimeInMinutes": 10},
            "until 10 minutes later: duewheel-dev-X",
        ),
    ],
)
def test_a_deployment_says_what_undoes_the_next(
    configuration: dict[str, Any], expected: str
) -> None:
    assert expected in "\n".join(advice.rolled_back_by(configuration))


# ---------------------------------------------------------------- old versions


@each_case(
    ("published", "aliases", "deleted"),
    [
        (["1", "2", "3"], {"live": "3"}, []),
        (["1", "2", "3", "4", "5"], {"live": "5"}, ["1", "2"]),
        (["1", "2", "3", "4", "5"], {"live": "5", "mine": "1"}, ["2"]),
        (["1", "2", "3", "4", "5"], {"live": "4"}, ["1"]),  # 5: of a deployment that failed
        (["8", "9", "10", "11"], {"live": "11"}, ["8"]),
        (["1", "2"], {}, []),
    ],
)
def test_versions_older_than_the_last_three_of_an_alias_are_deleted(
    published: list[str], aliases: dict[str, str], deleted: list[str]
) -> None:
    aws = Aws()
    function = resource("AWS::Lambda::Function", "ApiFunction")
    aws.answers("cloudformation", "list_stack_resources", {"StackResourceSummaries": [function]})
    named = [{"Name": name, "FunctionVersion": version} for name, version in aliases.items()]
    aws.answers(
        "lambda", "list_aliases", {"Aliases": named}, FunctionName="duewheel-dev-ApiFunction"
    )
    versions = [{"Version": version} for version in ("$LATEST", *published)]
    aws.answers("lambda", "list_versions_by_function", {"Versions": versions})
    for version in deleted:
        aws.answers(
            "lambda", "delete_function", {},
            FunctionName="duewheel-dev-ApiFunction", Qualifier=version,
        )  # fmt: skip
    said = deploy._pruned(deploy.Account(aws.client, "eu-west-1"), "duewheel-dev")
    aws.check_all_used()
    assert said == ([f"{len(deleted)} old versions of functions are deleted."] if deleted else [])


def test_a_version_to_which_an_alias_shifts_by_weight_is_kept() -> None:
    aws = Aws()
    alias = {
        "FunctionVersion": "5",
        "RoutingConfig": {"AdditionalVersionWeights": {"1": 0.1}},
    }
    aws.answers("lambda", "list_aliases", {"Aliases": [alias]})
    assert deploy._named_by_aliases(aws.client("lambda"), "api") == {0, 1, 5}


def test_a_deployment_prints_the_address_and_the_alarms_without_recipients(
    aws: Aws, sam: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    aws.answers("cloudformation", "describe_stacks", stack_in("CREATE_COMPLETE"))
    limit(aws, 1_000)
    aws.answers("cloudformation", "list_stack_resources", {"StackResourceSummaries": []})
    aws.answers("cloudformation", "describe_stacks", stack_in("UPDATE_COMPLETE"))
    watched(aws, {"Rescued": [TOPIC], "DeadLetters": [TOPIC]})
    aws.answers("sns", "list_subscriptions_by_topic", {"Subscriptions": []}, TopicArn=TOPIC)
    tables_are(aws, protected=True)
    aws.answers("cloudformation", "list_stack_resources", {"StackResourceSummaries": []})
    printed = deployed_over(aws, sam, capsys)
    assert "runs version 1.2.3" in printed
    assert "API: https://api\n" in printed
    assert "Alarms: DeadLetters, Rescued\n" in printed
    assert "no subscriber" in printed
    assert "put AlarmEmail=you@example.com into duewheel-dev.parameters" in printed


def test_a_deployment_prints_the_recipients_of_alarms_and_those_not_confirmed(
    aws: Aws, sam: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    aws.answers("cloudformation", "describe_stacks", stack_in("CREATE_COMPLETE"))
    limit(aws, 1_000)
    aws.answers("cloudformation", "list_stack_resources", {"StackResourceSummaries": []})
    aws.answers("cloudformation", "describe_stacks", stack_in("UPDATE_COMPLETE"))
    watched(aws, {"Rescued": [TOPIC]})
    subscribed = [
        {"Protocol": "email", "Endpoint": "a@b.example", "SubscriptionArn": "PendingConfirmation"},
        {"Protocol": "https", "Endpoint": "https://pager", "SubscriptionArn": f"{TOPIC}:1"},
    ]
    aws.answers("sns", "list_subscriptions_by_topic", {"Subscriptions": subscribed}, TopicArn=TOPIC)
    tables_are(aws, protected=True)
    aws.answers("cloudformation", "list_stack_resources", {"StackResourceSummaries": []})
    printed = deployed_over(aws, sam, capsys)
    assert "email a@b.example (not confirmed yet" in printed
    assert "https https://pager\n" in printed
    assert "no subscriber" not in printed
