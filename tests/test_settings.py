"""Settings: all missing or invalid variables of the environment are named, together in one
error."""

import pytest

from duewheel.rules.access.grants import AuthMode, Right
from duewheel.rules.wheel.timing import DIRECT_LATE_MS
from duewheel.settings import SWEEP_MARGIN_SECONDS, Settings, SettingsError, settings_from
from tests.support.cases import each_case

LEAST = {
    "WHEEL_TABLE": "wheel",
    "REGISTRY_TABLE": "registry",
    "SLICE_QUEUE_URL": "https://queue.example/slices",
    "SLOW_QUEUE_URL": "https://queue.example/slow",
    "SECRETS_TABLE": "secrets",
    "NOTIFIER_FUNCTION": "notifier",
    "STACK_ID": "arn:aws:cloudformation:eu-central-1:123456789012:stack/timers/1f6",
}
WHOLE = {
    **LEAST,
    "BUCKETS": "3600",
    "LEAD_MS": "250",
    "PAGE_SIZE": "50",
    "RETENTION_DAYS": "7",
    "SWEEP_DELAY_SECONDS": "180",
    "NOTIFIER_TIMEOUT_SECONDS": "90",
    "LIST_INDEX": "off",
    "METRICS": "off",
    "AUTH_MODE": "keys",
    "IAM_DEFAULT": "write",
    "ALLOWED_PRIVATE_CIDRS": "10.0.0.0/8, fd00::/8",
    "TARGET_ARNS": "arn:aws:lambda:eu-central-1:123456789012:function:orders-*,arn:aws:sqs:*:*:a",
    "OWN_NAMES": "slices,notifier",
}
NUMBERS = [name for name, text in WHOLE.items() if text.isdecimal()]


def error_of(environment: dict[str, str]) -> str:
    with pytest.raises(SettingsError) as raised:
        settings_from(environment)
    return str(raised.value)


def test_every_variable_has_its_setting() -> None:
    assert settings_from(WHOLE) == Settings(
        wheel_table="wheel",
        registry_table="registry",
        slice_queue_url="https://queue.example/slices",
        slow_queue_url="https://queue.example/slow",
        notifier_function="notifier",
        secrets_table="secrets",
        stack_id="arn:aws:cloudformation:eu-central-1:123456789012:stack/timers/1f6",
        buckets=3_600,
        lead_ms=250,
        page_size=50,
        retention_days=7,
        sweep_delay_seconds=180,
        notifier_timeout_seconds=90,
        list_index=False,
        metrics=False,
        auth_mode=AuthMode.KEYS,
        iam_default=Right.WRITE,
        allowed_private_cidrs=("10.0.0.0/8", "fd00::/8"),
        target_arns=(
            "arn:aws:lambda:eu-central-1:123456789012:function:orders-*",
            "arn:aws:sqs:*:*:a",
        ),
        own_names=("slices", "notifier"),
    )


def test_the_id_of_the_stack_sets_the_scope_of_plain_names() -> None:
    scope = settings_from(WHOLE).allowed_targets.scope
    assert (
        scope.arn("lambda", "function:f") == "arn:aws:lambda:eu-central-1:123456789012:function:f"
    )
    assert "STACK_ID" in error_of({**WHOLE, "STACK_ID": "timers"})


@each_case("text", ["*", "orders", "arn:aws:lambda", "urn:a:b:c:d:e"])
def test_a_target_that_is_not_an_arn_is_named(text: str) -> None:
    assert "TARGET_ARNS" in error_of({**WHOLE, "TARGET_ARNS": f"{WHOLE['TARGET_ARNS']},{text}"})


def test_variables_with_a_default_may_be_left_out() -> None:
    settings = settings_from(LEAST)
    assert (settings.buckets, settings.lead_ms, settings.retention_days) == (10_000_000, 500, 30)
    assert settings.list_index
    assert (settings.auth_mode, settings.iam_default) == (AuthMode.IAM, None)
    assert settings.allowed_private_cidrs == ()


def test_the_notifier_knows_its_own_name_from_lambda_and_invokes_its_alias() -> None:
    environment = {name: text for name, text in LEAST.items() if name != "NOTIFIER_FUNCTION"}
    assert (
        settings_from({**environment, "AWS_LAMBDA_FUNCTION_NAME": "me"}).notifier_function
        == "me:live"
    )
    assert (
        settings_from({**LEAST, "AWS_LAMBDA_FUNCTION_NAME": "me"}).notifier_function == "notifier"
    )


def test_a_function_counts_its_own_name_from_lambda_as_one_of_the_deployments() -> None:
    environment = {**WHOLE, "AWS_LAMBDA_FUNCTION_NAME": "api"}
    assert settings_from(environment).own_names == ("slices", "notifier", "api")


def test_other_variables_of_the_environment_do_not_matter() -> None:
    assert settings_from({**WHOLE, "PATH": "/usr/bin", "AWS_REGION": ""}) == settings_from(WHOLE)


@each_case("name", LEAST)
@each_case("how", ["absent", "empty"])
def test_a_missing_variable_is_named(name: str, how: str) -> None:
    environment = {other: text for other, text in WHOLE.items() if other != name}
    if how == "empty":
        environment[name] = ""
    assert error_of(environment) == f"{name} is missing"


@each_case("name", NUMBERS)
@each_case("text", ["", "-1", "1.5", "1e3", " 7", "0x10", "many", "9" * 20, "²"])
def test_an_invalid_number_is_named_with_its_text(name: str, text: str) -> None:
    assert error_of({**WHOLE, name: text}).startswith(f"{name}={text!r} is no whole number from ")


@each_case(
    ("name", "text"),
    [
        ("BUCKETS", "0"),
        ("LEAD_MS", "2001"),
        ("PAGE_SIZE", "0"),
        ("PAGE_SIZE", "101"),
        ("RETENTION_DAYS", "0"),
        ("SWEEP_DELAY_SECONDS", "3601"),
        ("NOTIFIER_TIMEOUT_SECONDS", "901"),
    ],
)
def test_a_number_out_of_its_range_is_named(name: str, text: str) -> None:
    assert error_of({**WHOLE, name: text}).startswith(f"{name}='{text}' ")


@each_case("text", ["", "On", "true", "yes"])
def test_an_index_is_on_or_off(text: str) -> None:
    assert error_of({**WHOLE, "LIST_INDEX": text}).startswith(f"LIST_INDEX={text!r} ")


@each_case(("name", "text"), [("AUTH_MODE", "none"), ("IAM_DEFAULT", "all")])
def test_an_unknown_mode_or_right_is_refused(name: str, text: str) -> None:
    """A misspelt mode does not permit more."""
    assert error_of({**WHOLE, name: text}).startswith(f"{name}={text!r} is none of ")
    assert error_of({**WHOLE, name: ""}).startswith(f"{name}='' is none of ")


def test_all_invalid_variables_are_named_in_one_error() -> None:
    wrong = dict.fromkeys([*NUMBERS, "LIST_INDEX"], "?")
    error = error_of(wrong)
    assert [name for name in [*LEAST, *wrong] if name not in error] == []
    assert len(error.split("; ")) == len(LEAST) + len(wrong)


def sweep_least(notifier_timeout_seconds: int) -> int:
    return DIRECT_LATE_MS // 1000 + notifier_timeout_seconds + SWEEP_MARGIN_SECONDS


@each_case("notifier_timeout_seconds", [30, 60, 900])
def test_the_sweep_leaves_room_for_late_direct_messages_and_a_whole_run_of_the_notifier(
    notifier_timeout_seconds: int,
) -> None:
    least = sweep_least(notifier_timeout_seconds)
    environment = {**WHOLE, "NOTIFIER_TIMEOUT_SECONDS": str(notifier_timeout_seconds)}

    enough = settings_from({**environment, "SWEEP_DELAY_SECONDS": str(least)})
    assert enough.sweep_delay_seconds * 1000 > DIRECT_LATE_MS + notifier_timeout_seconds * 1000
    error = error_of({**environment, "SWEEP_DELAY_SECONDS": str(least - 1)})
    assert error.startswith(f"SWEEP_DELAY_SECONDS={least - 1} is less than {least}")


@each_case("notifier_timeout_seconds", ["60", "900"])
def test_the_lifetime_of_a_notifier_is_longer_than_its_timeout(
    notifier_timeout_seconds: str,
) -> None:
    settings = settings_from(
        {
            **WHOLE,
            "NOTIFIER_TIMEOUT_SECONDS": notifier_timeout_seconds,
            "SWEEP_DELAY_SECONDS": "3600",
        }
    )
    assert settings.notifier_lives_ms > settings.notifier_timeout_seconds * 1000


def test_retention_is_converted_to_seconds() -> None:
    assert settings_from(WHOLE).retention_seconds == 7 * 86_400
