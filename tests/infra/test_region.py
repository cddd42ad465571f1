"""Each verb of operators works in the Region that the AWS CLI would take."""

import os
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import NoCredentialsError
from botocore.session import Session

from infra.operate import admin_key, audit, dead_letters, deploy, reconcile
from infra.operate.region import NoRegion, take_region

ROOT = Path(__file__).parents[2]
QUEUE = "https://sqs.eu-west-1.amazonaws.com/123456789012/dead"
DEPLOY = [
    "dev", "--template", str(ROOT / "template.yaml"), "--sam", "sam",
    "--watch-minutes", "10", "--again", "make deploy",
]  # fmt: skip


@pytest.fixture
def profile(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One whose Region is `eu-north-1`, and no variable with a Region."""
    config = tmp_path / "config"
    config.write_text("[default]\nregion = eu-north-1\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    monkeypatch.delenv("AWS_DEFAULT_REGION")


@pytest.mark.parametrize(
    ("variables", "region"),
    [
        ({"AWS_REGION": "eu-west-1", "AWS_DEFAULT_REGION": "eu-south-1"}, "eu-west-1"),
        ({"AWS_DEFAULT_REGION": "eu-south-1"}, "eu-south-1"),
        ({"AWS_REGION": ""}, "eu-north-1"),
    ],
)
@pytest.mark.usefixtures("profile")
def test_the_region_is_that_of_the_aws_cli_for_children_too(
    variables: dict[str, str], region: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert take_region() == region
    assert os.environ["AWS_DEFAULT_REGION"] == region, "the SAM CLI reads no other"


def test_without_a_region_the_refusal_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    with pytest.raises(NoRegion, match="export AWS_REGION="):
        take_region()


@pytest.mark.parametrize(
    ("verb", "arguments"),
    [
        (deploy, DEPLOY),
        (admin_key, ["my-timers"]),
        (reconcile, ["my-timers"]),
        (dead_letters, [QUEUE]),
        (dead_letters, [QUEUE, "--redrive-to", QUEUE, QUEUE]),
        (dead_letters, [QUEUE, "--redrive-to-ingest", QUEUE]),
    ],
)
@pytest.mark.usefixtures("profile")
def test_every_verb_works_in_aws_region(
    verb: Any, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    regions = []

    def refused(session: Session, *_: Any, **given: Any) -> None:
        regions.append(given.get("region_name") or session.get_config_variable("region"))
        raise NoCredentialsError

    monkeypatch.setattr(Session, "create_client", refused)
    assert verb.main(arguments) != 0
    assert regions == ["eu-west-1"]


@pytest.mark.parametrize(
    ("url", "region"),
    [
        ("https://timers.example.com", "eu-west-1"),
        ("https://a1.execute-api.eu-south-1.amazonaws.com", "eu-south-1"),
    ],
)
@pytest.mark.usefixtures("profile")
def test_an_audit_is_signed_for_the_region_of_the_address_or_for_aws_region(
    url: str, region: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    asked: list[urllib.request.Request] = []

    def refused(request: urllib.request.Request, **_: Any) -> None:
        asked.append(request)
        raise urllib.error.URLError("no network")

    monkeypatch.setattr(urllib.request, "urlopen", refused)
    assert audit.main([url]) == 2
    assert f"/{region}/execute-api/" in str(asked[0].headers["Authorization"])
