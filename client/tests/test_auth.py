"""Keys and signatures in the requests of the client."""

import httpx
import pytest

from duewheel import BearerKey, Duewheel, SigV4
from duewheel.cli.connection import aws_client
from tests.signatures import SECRET, signed_by_hand
from tests.support import Script, made

API = "https://abc123.execute-api.eu-central-1.amazonaws.com"


@pytest.fixture
def script() -> Script:
    return Script(made())


def test_requests_without_a_key_carry_no_credentials(script: Script) -> None:
    client = Duewheel(transport=script.transport)
    client.tasks.get("AQ")
    assert client.url == "http://127.0.0.1:8080"
    assert script.headers("authorization") == [None]


def test_url_and_key_come_from_the_environment(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUEWHEEL_URL", f"{API}/")
    monkeypatch.setenv("DUEWHEEL_KEY", "dw_environment")
    Duewheel(transport=script.transport).tasks.get("AQ")
    Duewheel("http://other.example", BearerKey("dw_given"), transport=script.transport).tasks.get(
        "AQ"
    )
    assert [str(request.url) for request in script.requests] == [
        f"{API}/v1/tasks/AQ",
        "http://other.example/v1/tasks/AQ",
    ]
    assert script.headers("authorization") == ["Bearer dw_environment", "Bearer dw_given"]


def test_an_address_needs_a_scheme() -> None:
    with pytest.raises(ValueError, match="begins with https://"):
        Duewheel("abc123.execute-api.eu-central-1.amazonaws.com")


@pytest.mark.parametrize("key", ["", " ", "dw_a\r\nx: y", "dw_é"])
def test_an_empty_or_unprintable_key_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match="no key"):
        BearerKey(key)


@pytest.mark.usefixtures("credentials")
def test_no_repr_shows_a_secret() -> None:
    shown = repr(BearerKey("dw_secret")) + repr(SigV4()) + repr(Duewheel(API, SigV4()))
    assert "dw_secret" not in shown
    assert SECRET not in shown


def test_without_credentials_no_request_is_sent(
    script: Script, monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", f"{tmp_path}/none")
    monkeypatch.setenv("AWS_CONFIG_FILE", f"{tmp_path}/none")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(ValueError, match="no AWS credentials"):
        Duewheel(API, SigV4(), transport=script.transport).tasks.get("AQ")
    assert script.requests == []


@pytest.mark.usefixtures("credentials")
def test_signing_needs_a_region_if_the_address_has_none(script: Script) -> None:
    with pytest.raises(ValueError, match="which Region"):
        Duewheel("https://timers.example", SigV4(), transport=script.transport).tasks.get("AQ")
    Duewheel(
        "https://timers.example", SigV4(region="eu-west-1"), transport=script.transport
    ).tasks.get("AQ")
    assert "/eu-west-1/execute-api/" in script.requests[0].headers["authorization"]


@pytest.mark.usefixtures("credentials")
def test_the_region_is_that_of_the_aws_cli_which_reads_aws_region_first(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    Duewheel("https://timers.example", SigV4(), transport=script.transport).tasks.get("AQ")
    assert "/eu-west-1/execute-api/" in script.requests[0].headers["authorization"]
    assert aws_client("cloudformation", None).meta.region_name == "eu-west-1"


@pytest.mark.usefixtures("credentials")
def test_signatures_are_valid_for_every_kind_of_request(script: Script) -> None:
    client = Duewheel(API, SigV4(), transport=script.transport)
    client.tasks.create("orders", delay=1, payload="ü", once=True)
    client.tasks.put("orders", "order-17:close~1", delay=1)
    client.tasks.get("AQ-_")
    script._answers = [httpx.Response(200, json={"tasks": [], "cursor": None})]
    list(client.tasks.list_by_prefix("orders", "order-17: +&=/~ü"))
    client.close()
    assert len(script.requests) == 4
    for request in script.requests:
        assert request.headers["x-amz-security-token"] == "token"
        assert request.headers["authorization"] == signed_by_hand(request)


def test_expired_credentials_are_renewed(script: Script) -> None:
    from botocore.credentials import RefreshableCredentials

    def fetched(number: int) -> dict[str, str]:
        times = ["2000-01-01T00:00:00Z", "2100-01-01T00:00:00Z"]
        return {
            "access_key": f"AKID{number}",
            "secret_key": SECRET,
            "token": f"token-{number}",
            "expiry_time": times[number],
        }

    auth = SigV4()
    auth._credentials = RefreshableCredentials.create_from_metadata(
        fetched(0), lambda: fetched(1), "test"
    )
    Duewheel(API, auth, transport=script.transport).tasks.get("AQ")
    assert script.headers("x-amz-security-token") == ["token-1"]
    assert "Credential=AKID1/" in script.requests[0].headers["authorization"]


@pytest.mark.usefixtures("credentials")
def test_a_repeated_request_is_signed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("duewheel._sync.transport.Transport.pause", lambda *_: None)
    script = Script(httpx.ReadTimeout("lost"), made())
    Duewheel(API, SigV4(), transport=script.transport).tasks.get("AQ")
    for request in script.requests:
        assert request.headers["authorization"] == signed_by_hand(request)
