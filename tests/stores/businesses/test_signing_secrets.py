"""Secrets are stored encrypted, each bound to its business; a process decrypts each of them
once."""

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


def test_a_sealed_secret_is_encrypted_and_can_be_decrypted(
    sealed_secrets: SealedSecrets,
) -> None:
    sealed = sealed_secrets.seal("orders", SECRET)
    assert SECRET not in sealed
    assert sealed_secrets.open("orders", sealed) == SECRET


def test_a_secret_of_another_business_cannot_be_decrypted(sealed_secrets: SealedSecrets) -> None:
    sealed = sealed_secrets.seal("orders", SECRET)
    with pytest.raises(KeyUnavailable):
        sealed_secrets.open("mails", sealed)


def test_a_process_decrypts_a_secret_once(
    sealed_secrets: SealedSecrets, recorder: Recorder
) -> None:
    sealed = [sealed_secrets.seal("orders", SECRET + bytes([n])) for n in range(3)]
    recorder.clear()
    for _ in range(5):
        for number, one in enumerate(sealed):
            assert sealed_secrets.open("orders", one) == SECRET + bytes([number])
    assert recorder.operations() == ["Decrypt"] * 3


def test_a_failed_decryption_is_not_cached(
    sealed_secrets: SealedSecrets, recorder: Recorder
) -> None:
    sealed = sealed_secrets.seal("orders", SECRET)

    def fail(_: object) -> None:
        raise ConnectTimeoutError(endpoint_url="https://kms")

    recorder.before = fail
    with pytest.raises(KeyUnavailable):
        sealed_secrets.open("orders", sealed)
    recorder.before = None
    assert sealed_secrets.open("orders", sealed) == SECRET
