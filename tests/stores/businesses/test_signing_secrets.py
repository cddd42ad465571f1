"""Secrets lie sealed, each bound to its business, and a process opens each of them once."""

from collections.abc import Iterator

import boto3
import pytest
from botocore.exceptions import ConnectTimeoutError
from moto import mock_aws

from duewheel.stores.businesses.signing_secrets import KeyUnavailable, SealedSecrets
from tests.support.recorder import Recorder

SECRET = b"thirty-two bytes of no consequence"


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def sealed_secrets(recorder: Recorder) -> Iterator[SealedSecrets]:
    with mock_aws():
        client = boto3.client("kms")
        key = client.create_key()["KeyMetadata"]["KeyId"]
        recorder.attach(client)
        yield SealedSecrets(lambda: client, key)


def test_what_was_sealed_is_opened_again_and_cannot_be_read_in_between(
    sealed_secrets: SealedSecrets,
) -> None:
    sealed = sealed_secrets.seal("orders", SECRET)
    assert SECRET not in sealed
    assert sealed_secrets.open("orders", sealed) == SECRET


def test_a_secret_moved_to_another_business_does_not_open(sealed_secrets: SealedSecrets) -> None:
    sealed = sealed_secrets.seal("orders", SECRET)
    with pytest.raises(KeyUnavailable):
        sealed_secrets.open("mails", sealed)


def test_a_process_opens_a_secret_once(sealed_secrets: SealedSecrets, recorder: Recorder) -> None:
    sealed = [sealed_secrets.seal("orders", SECRET + bytes([n])) for n in range(3)]
    recorder.clear()
    for _ in range(5):
        for number, one in enumerate(sealed):
            assert sealed_secrets.open("orders", one) == SECRET + bytes([number])
    assert recorder.operations() == ["Decrypt"] * 3


def test_a_refusal_is_not_kept(sealed_secrets: SealedSecrets, recorder: Recorder) -> None:
    sealed = sealed_secrets.seal("orders", SECRET)

    def fail(_: object) -> None:
        raise ConnectTimeoutError(endpoint_url="https://kms")

    recorder.before = fail
    with pytest.raises(KeyUnavailable):
        sealed_secrets.open("orders", sealed)
    recorder.before = None
    assert sealed_secrets.open("orders", sealed) == SECRET
