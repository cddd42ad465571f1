"""`make move-secrets` moves what a key sealed into the table of secrets."""

from typing import Any

import boto3
import pytest

from infra.operate import move_secrets
from tests.infra.test_admin_key import CloudFormation
from tests.support.world import World

WHSEC = "whsec_" + 32 * "A"


@pytest.fixture
def run(world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    outputs = CloudFormation(
        {
            "RegistryTable": world.settings.registry_table,
            "SecretsTable": world.settings.secrets_table,
        }
    )
    real = boto3.client

    def client(service: str) -> Any:
        return outputs if service == "cloudformation" else real(service)

    monkeypatch.setattr(move_secrets.boto3, "client", client)

    def lines(*arguments: str) -> list[str]:
        assert move_secrets.main(["timers", *arguments]) == 0
        return capsys.readouterr().out.splitlines()

    return lines


def opened(world: World, biz_type: str) -> set[bytes]:
    own = world.businesses.read_whole(biz_type).own
    return {world.secret_store.open(biz_type, stored) for stored in own.stored_secrets}


def test_sealed_secrets_are_listed_and_moved_on_request(world: World, run: Any) -> None:
    world.seal_secrets()
    world.configured("orders", signing_secrets=(WHSEC,), secrets={"token": "a", "other": "b"})
    world.configured("plain", retention_days=3)
    world.wire(signing_key="")
    world.configured("table", secrets={"token": "c"})
    before = opened(world, "orders")

    assert run() == ["orders: 3 secrets, to be moved"]
    assert world.businesses.read_whole("orders").version == 1
    assert run("--write") == ["orders: 3 secrets, moved"]
    assert run() == []
    assert opened(world, "orders") == before == {bytes(24), b"a", b"b"}
    after = world.businesses.read_whole("orders")
    assert (after.version, [one.name for one in after.own.secrets or ()]) == (2, ["other", "token"])
    names = {item["id"]["S"].partition("#")[0] for item in world.emulator.items("duewheel-Secrets")}
    assert names == {"orders", "table"}


def test_a_business_that_is_changed_meanwhile_is_left_for_the_next_run(
    world: World, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.seal_secrets()
    world.configured("orders", secrets={"token": "a"})
    monkeypatch.setattr(move_secrets.BusinessStore, "write", lambda *_: False)
    (line,) = run("--write")
    assert "changed meanwhile" in line
    assert world.emulator.items("duewheel-Secrets") == []
    assert opened(world, "orders") == {b"a"}


def test_without_a_stack_nothing_is_moved(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(move_secrets.boto3, "client", lambda _: CloudFormation({}))
    monkeypatch.setattr(move_secrets, "retry_conflicts", lambda _: None)
    assert move_secrets.main(["timers"]) == 1
    assert "Not moved" in capsys.readouterr().err
