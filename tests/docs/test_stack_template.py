"""The template of an application in the guide makes the timer that the guide describes."""

from pathlib import Path
from typing import Any

import pytest

from duewheel.wiring import process
from local.aws.template import source_of
from tests.functions.conftest import call, wired
from tests.functions.test_stack_timers import send, storage
from tests.support.clock import ManualClock
from tests.support.stack_requests import StackOfATeam, guide, template_in_guide

__all__ = ["send", "storage", "wired"]  # fixtures


def properties(tmp_path: Path) -> dict[str, Any]:
    path = tmp_path / "template.yaml"
    path.write_text(template_in_guide(), encoding="utf-8")
    source: dict[str, Any] = source_of(path)
    resource = source["Resources"]["Nightly"]
    assert resource["Type"] == "Custom::DuewheelTimer"
    found: dict[str, Any] = resource["Properties"]
    token = found.pop("ServiceToken")["Fn::Sub"]
    assert token.endswith(":${AWS::AccountId}:function:${Duewheel}-timers:live")
    definition = found["definition"]["Fn::Sub"]
    return found | {"definition": definition.replace("${Report}", "reports-app-Report-1ABC")}


def test_the_template_of_the_guide_makes_its_timer(
    wired: ManualClock, send: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    covered = "arn:aws:lambda:*:*:function:reports-app-*"
    assert f"`{covered}`" in guide()
    monkeypatch.setenv("TARGET_ARNS", covered)
    process.start_anew(wired)
    stack = StackOfATeam(send=send, name="reports-app")
    answer = stack.create(properties(tmp_path))
    assert answer["Status"] == "SUCCESS", answer
    assert answer["Data"]["next_at"]
    (timer,) = call("GET", "/v1/timers", query="biz_type=reports")[1]["timers"]
    assert (timer["cron"], timer["timezone"]) == ("30 2 * * *", "Europe/Berlin")
    assert timer["retry"]["attempts"] == 5
    assert timer["payload"] == {"night": "{{due_at}}", "pages": 20}
    assert timer["callback"]["function"] == "reports-app-Report-1ABC"
    assert timer["managed_by"].startswith("cloudformation:reports-app/Nightly#")


def test_the_reason_that_the_guide_shows_is_the_one_that_is_given(
    wired: ManualClock, send: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = {"url": "https://receiver.example/"}
    wrong = {"biz_type": "reports", "name": "b", "cron": "0 3 * * *", "callback": hook}
    monkeypatch.setenv("STACK_TIMERS_AS", "duewheel-write-reports")
    process.start_anew(wired)
    reason = StackOfATeam(send=send).create({**wrong, "retry": {"attempts": 500}})["Reason"]
    assert f"`{reason}`" in guide(), reason
