"""Signing secrets, sealed by KMS: a reader of the Registry cannot open them.

A sealed secret is bound to its business. Each process opens a secret once and keeps it in memory
only.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

if TYPE_CHECKING:
    from mypy_boto3_kms.client import KMSClient

OPENED_MAX = 1_000


class KeyUnavailable(Exception):
    """KMS failed to seal or open: it does not answer, or this function has no right."""


class SealedSecrets:
    def __init__(self, client: "Callable[[], KMSClient]", key: str) -> None:
        """The client is built for the first secret: most processes need none."""
        self._client = client
        self._key = key
        self._opened = lru_cache(OPENED_MAX)(self._open)

    def seal(self, biz_type: str, secret: bytes) -> bytes:
        try:
            answer = self._client().encrypt(
                KeyId=self._key, Plaintext=secret, EncryptionContext=_context(biz_type)
            )
        except (ClientError, BotoCoreError) as error:
            raise KeyUnavailable(str(error)) from error
        return answer["CiphertextBlob"]

    def open(self, biz_type: str, sealed: bytes) -> bytes:
        return self._opened(biz_type, sealed)

    def _open(self, biz_type: str, sealed: bytes) -> bytes:
        try:
            answer = self._client().decrypt(
                KeyId=self._key, CiphertextBlob=sealed, EncryptionContext=_context(biz_type)
            )
        except (ClientError, BotoCoreError) as error:
            raise KeyUnavailable(str(error)) from error
        return answer["Plaintext"]


def _context(biz_type: str) -> dict[str, str]:
    return {"biz_type": biz_type}
