"""docs/delivery.md shows what really arrives, and names every parameter that allows it."""

import json
import re
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from duewheel.rules.callbacks.aws.outcome import outcome_of_refusal
from duewheel.rules.callbacks.aws.registry import AWS_TARGETS
from duewheel.rules.callbacks.outcome import RETRY_DEFAULT, STOP_DEFAULT, Verdict
from duewheel.rules.callbacks.payload_encoding import attributes_of, envelope
from duewheel.rules.callbacks.retry import DEFAULT_RETRY, delay_ms
from local.aws.template import source_of
from tests.rules.tasks.test_lifecycle import TASK

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "delivery.md").read_text("utf-8")
EVENT, BUS_EVENT = (json.loads(text) for text in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL))

UNITS = {"h": 3600, "min": 60, "s": 1}


def section(title: str) -> str:
    return PAGE.partition(f"### {title}\n")[2].partition("\n### ")[0]


def test_the_event_shown_has_the_members_that_a_function_gets() -> None:
    sent: dict[str, Any] = json.loads(envelope(replace(TASK, payload='{"order": 17}')))
    assert list(EVENT) == list(sent)
    assert EVENT["payload"] == sent["payload"]
    assert BUS_EVENT["detail"] == EVENT


def test_the_attributes_listed_are_those_that_are_sent() -> None:
    listed = re.findall(r"^\| `(duewheel-[a-z-]+)`", section("SQS and SNS"), re.MULTILINE)
    assert listed == list(attributes_of(TASK))


def test_the_codes_that_are_said_to_stop_do() -> None:
    row = next(line for line in PAGE.splitlines() if "the request is wrong" in line)
    codes = re.findall(r"`([A-Z][A-Za-z]+)`", row)
    assert len(codes) > 4
    of_one_service = {code for target in AWS_TARGETS for code in target.stop_codes}
    for code in set(codes) - of_one_service:
        assert outcome_of_refusal(code, "", 400, "", now_ms=0).verdict is Verdict.STOP


def test_every_list_of_targets_is_explained_with_the_right_that_it_gives() -> None:
    template = source_of(ROOT / "template.yaml")
    rows = dict(re.findall(r"^\| `(Target\w+Arns)` \|.*\| `([a-z]+:\w+)` \|$", PAGE, re.MULTILINE))
    policies = [
        resource["Properties"]
        for resource in template["Resources"].values()
        if resource.get("Condition", "").startswith("HasTarget")
    ]
    rights = {}
    for policy in policies:
        (statement,) = policy["PolicyDocument"]["Statement"]
        rights[statement["Resource"]["Fn::Split"][1]["Ref"]] = statement["Action"]
    assert rows == rights


def seconds(text: str) -> int:
    return sum(int(number) * UNITS[unit] for number, unit in re.findall(r"(\d+) (h|min|s)\b", text))


def test_the_table_of_retries_is_that_of_the_default_policy() -> None:
    rows = re.findall(r"^\| (\d+) \| ([^|]*) \| ([^|]*) \|$", PAGE, re.M)
    waits = [delay_ms(DEFAULT_RETRY, made, 1.0) for made in range(1, 16)]
    assert [int(number) for number, *_ in rows] == list(range(1, 17))
    assert [seconds(wait) * 1000 for _, wait, _ in rows[1:]] == waits
    after = 0
    for _, wait, at in rows:
        after += seconds(wait)
        assert seconds(at) == after
    assert delay_ms(DEFAULT_RETRY, 16, 1.0) is None


def test_the_statuses_of_the_page_are_the_default_lists() -> None:
    (retried,) = re.findall(r"^\| answers (401.*?) \| failed", PAGE, re.M)
    (stopped,) = re.findall(r"^\| answers (400.*?) \| stopped", PAGE, re.M)
    for text, entries in ((retried, RETRY_DEFAULT), (stopped, STOP_DEFAULT)):
        assert re.findall(r"\dxx|\d{3}", text) == [str(entry) for entry in entries]
