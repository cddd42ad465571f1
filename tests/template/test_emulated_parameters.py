"""What `make deploy-emulated` turns on. It takes minutes, so that it is looked at here as well."""

from pathlib import Path
from unittest.mock import MagicMock

from local.aws.template import load_template, source_of
from tests.emulated.account import LACKING, Account, everything_on

TEMPLATE = Path(__file__).parents[2] / "template.yaml"
OF_THE_BUILD = {"Architecture"}


def turned_on() -> dict[str, str]:
    account = MagicMock(spec=Account)
    for name in ("subnet", "security_group", "key_arn"):
        setattr(account, name, name)
    account.boundary_arn = "arn:aws:iam::000000000000:policy/target"
    for name in ("function_arn", "queue_arn", "topic_arn", "event_bus_arn", "asking_rule_arn"):
        setattr(account, name, f"arn:aws:lambda:us-east-1:000000000000:{name}")
    return everything_on(account)


def test_each_parameter_is_turned_on_there_or_is_one_that_the_emulator_cannot_carry_out() -> None:
    declared = source_of(TEMPLATE)["Parameters"].keys() - OF_THE_BUILD
    assert turned_on().keys() == declared - LACKING.keys()
    assert LACKING.keys() <= declared


def test_what_is_turned_on_reverses_each_condition_that_does_not_need_what_is_lacking() -> None:
    conditions = source_of(TEMPLATE)["Conditions"]
    usual, other = (load_template(TEMPLATE, p).intrinsics for p in ({}, turned_on()))
    alike = {name for name in conditions if usual.holds(name) == other.holds(name)}
    # Metrics are on by default.
    assert alike == {"HasMetrics", "IsProvisioned", "HasProvisionedListIndex"}
