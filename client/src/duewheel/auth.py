"""Callers' credentials: an API key, or AWS credentials that sign each request (extra `aws`)."""

import os
import re
from collections.abc import Generator
from typing import Any

import httpx

_HOST_REGION = re.compile(r"\.execute-api\.([a-z0-9-]+)\.")
SERVICE = "execute-api"


def region_of(session: Any) -> str | None:
    """As the AWS CLI has it. The SDK does not read AWS_REGION."""
    return os.environ.get("AWS_REGION") or session.get_config_variable("region")


class BearerKey(httpx.Auth):
    """A key of the service: `dw_…`."""

    def __init__(self, key: str) -> None:
        if not key.isascii() or not key.isprintable() or not key.strip():
            raise ValueError("this is no key: it begins with dw_ and is printable")
        self._header = f"Bearer {key.strip()}"

    def __repr__(self) -> str:
        return "BearerKey(…)"

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        request.headers["authorization"] = self._header
        yield request


class SigV4(httpx.Auth):
    """Signature Version 4 with the credentials that the AWS SDK finds and renews.

    The Region is that in the address of the API, or `region`, which a custom domain needs.
    """

    def __init__(self, profile: str | None = None, region: str | None = None) -> None:
        try:
            import botocore.session
        except ImportError as error:
            raise ImportError("SigV4 needs botocore: pip install 'duewheel[aws]'") from error
        self._session = botocore.session.Session(profile=profile)
        self._region = region
        self._credentials: Any = None

    def __repr__(self) -> str:
        return f"SigV4(profile={self._session.profile!r}, region={self._region!r})"

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest

        # A request that is sent again is signed again: signatures are valid for five minutes.
        signed = AWSRequest(request.method, str(request.url), data=request.content)
        SigV4Auth(self._found(), SERVICE, self._region_of(request.url.host)).add_auth(signed)
        for name, value in signed.headers.items():
            request.headers[name] = value
        yield request

    def _found(self) -> Any:
        """The credentials, frozen: a renewal between the reads of their parts would make the
        signature invalid."""
        if self._credentials is None:
            self._credentials = self._session.get_credentials()
        if self._credentials is None:
            raise ValueError("there are no AWS credentials to sign the request with")
        return self._credentials.get_frozen_credentials()

    def _region_of(self, host: str) -> str:
        in_host = _HOST_REGION.search(host)
        region = self._region or (in_host and in_host[1]) or region_of(self._session)
        if not region:
            raise ValueError(f"in which Region is {host}? Say SigV4(region=...)")
        return str(region)
