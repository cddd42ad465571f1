"""The numbers and names in docs/concepts.md and the guides, where no block shows them."""

import re
from typing import Any

import pytest

from duewheel.rules.callbacks.retry import DEFAULT_RETRY
from duewheel.rules.tasks.task import Status
from duewheel.rules.timers.schedule import Schedule
from duewheel.rules.timers.timer import Rules
from duewheel.rules.wheel.timing import SKEW_MS
from local.aws.template import source_of
from tests.support.page_blocks import PAGES, ROOT, text_of

CONCEPTS = text_of("docs/concepts.md")
TEMPLATE: Any = source_of(ROOT / "template.yaml")
LEAD_MS = int(TEMPLATE["Mappings"]["Constants"]["Wheel"]["LeadMilliseconds"])
GUIDES = [page for page in PAGES if page.startswith(("docs/guides/", "docs/concepts"))]
# Services of AWS by the beginning of their actions, which is the name of their endpoint as well.
WITHOUT_ENDPOINT = {"logs", "ec2"}  # Lambda itself writes the log and makes the interfaces


def default(parameter: str) -> Any:
    return TEMPLATE["Parameters"][parameter]["Default"]


def test_a_task_is_settled_in_the_ways_that_it_names() -> None:
    (settled,) = re.findall(r"\*\*settled\*\* when it has ended: (.*?)\.\n", CONCEPTS, re.DOTALL)
    assert set(re.findall(r"`(\w+)`", settled)) == set(Status) - {Status.PENDING}
    drawn = set(re.findall(r"^    (\w+) -->", CONCEPTS, re.MULTILINE))
    assert drawn == set(Status) | {"parked"}


def test_every_promise_is_there() -> None:
    assert re.findall(r"^\| (P\d) \|", CONCEPTS, re.MULTILINE) == [f"P{n}" for n in range(1, 8)]


@pytest.mark.parametrize("page", GUIDES)
def test_the_cut_off_is_as_long_before_the_call_as_is_said(page: str) -> None:
    """And is said in no other way."""
    text = text_of(page)
    said = re.findall(r"([\d.]+) s\s+before the (?:second|call)", text)
    assert set(map(float, said)) <= {(LEAD_MS + SKEW_MS) / 1000}
    assert said or page not in ("docs/concepts.md", "docs/guides/delay.md")


def test_the_numbers_are_those_of_the_service() -> None:
    assert f"the lead ({LEAD_MS / 1000:g} s)" in CONCEPTS
    assert f"possible difference ({SKEW_MS // 1000} s)" in CONCEPTS
    assert f"about {default('Buckets') // 86_400} days" in CONCEPTS
    assert f"{default('RetentionDays')} days (`RetentionDays`)" in CONCEPTS
    delay = text_of("docs/guides/delay.md")
    assert f"there are {DEFAULT_RETRY.attempts_max} attempts" in delay
    assert f"within `grace_seconds` ({Rules('', Schedule()).grace_seconds})" in text_of(
        "docs/guides/cron.md"
    )
    receive = text_of("docs/guides/receive-and-verify.md")
    assert f"may take {default('CallbackTimeoutSeconds')} seconds" in receive


def test_the_guide_to_private_networks_names_an_endpoint_for_each_service_that_is_called() -> None:
    named = set(re.findall(r"\| `(\w+)`, of type", text_of("docs/guides/private-network.md")))
    assert named == set(services_of("NotifierRole")) - WITHOUT_ENDPOINT


def services_of(role: str) -> list[str]:
    """By the actions that its policies allow, whatever the parameters."""
    resources = TEMPLATE["Resources"]
    attached = [
        resource["Properties"]["PolicyDocument"]
        for resource in resources.values()
        if {"Ref": role} in resource["Properties"].get("Roles", [])
    ]
    inline = [policy["PolicyDocument"] for policy in resources[role]["Properties"]["Policies"]]
    # Behind a customer's key DynamoDB and SQS ask KMS by themselves; the name is there anyhow.
    return re.findall(r"'([a-z0-9]+):[A-Z]\w+'", repr([attached, inline]))
