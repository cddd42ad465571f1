"""The address and the credentials, from options and environment, and a client of them.

An option overrides the environment, which overrides the local stack.
"""

import os
from dataclasses import dataclass, field
from typing import Any

import httpx

from duewheel import whereabouts
from duewheel._sync.client import Duewheel
from duewheel.auth import BearerKey, SigV4, region_of
from duewheel.cli.failures import Failed

PROFILE = "DUEWHEEL_PROFILE"
STACK = "DUEWHEEL_STACK"
SIGNED_HOST = ".execute-api."


@dataclass
class Connection:
    """`transport` replaces the network in tests."""

    url: str | None = None
    key: str | None = field(default=None, repr=False)
    profile: str | None = None
    stack: str | None = None
    transport: httpx.BaseTransport | None = field(default=None, repr=False)

    def client(self, patience_seconds: float = 60.0) -> Duewheel:
        url = self.address()
        auth = self.auth(url)
        return Duewheel(url, auth, patience_seconds=patience_seconds, transport=self.transport)

    def address(self) -> str:
        if self.url is None and (stack := self._stack()):
            return _address_in(self.aws("cloudformation"), stack)
        return whereabouts.base_url(self.url)

    def auth(self, url: str) -> httpx.Auth | None:
        """A key, or signatures, which a profile or an address of API Gateway selects."""
        key = self.key or (None if self.profile else os.environ.get(whereabouts.KEY))
        if key:
            return BearerKey(key)
        if self._profile() or SIGNED_HOST in url:
            return _signing(self._profile())
        return None

    def aws(self, service: str) -> Any:
        return aws_client(service, self._profile())

    def _profile(self) -> str | None:
        return self.profile or os.environ.get(PROFILE)

    def _stack(self) -> str | None:
        """The CloudFormation stack. An address in the environment overrides a stack in the
        environment."""
        if self.stack or os.environ.get(whereabouts.URL):
            return self.stack
        return os.environ.get(STACK)


def as_whom(auth: httpx.Auth | None) -> str:
    match auth:
        case BearerKey():
            return "with an API key"
        case SigV4():
            return "with AWS credentials"
    return "without credentials"


def _signing(profile: str | None) -> SigV4:
    try:
        return SigV4(profile=profile)
    except ImportError as error:
        raise Failed(str(error)) from None


def aws_client(service: str, profile: str | None) -> Any:
    try:
        import botocore.session
    except ImportError:
        raise Failed("This needs botocore: pip install 'duewheel[aws]'") from None
    session = botocore.session.Session(profile=profile)
    return session.create_client(service, region_name=region_of(session))


def _address_in(cloudformation: Any, stack: str) -> str:
    described = cloudformation.describe_stacks(StackName=stack)
    for output in described["Stacks"][0].get("Outputs", []):
        if output["OutputKey"] == "ApiUrl":
            return str(output["OutputValue"])
    raise Failed(f"The stack {stack} has no output ApiUrl")
