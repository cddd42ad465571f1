"""The parts of functions that read API keys."""

from duewheel.stores.access.api_keys import ApiKeyStore
from duewheel.wiring.process import clock, dynamodb, once, settings
from duewheel.workflows.access.authenticate_key import AuthenticateKey


@once
def api_keys() -> ApiKeyStore:
    return ApiKeyStore(dynamodb(), settings().registry_table)


@once
def authorize() -> AuthenticateKey:
    return AuthenticateKey(clock(), api_keys())
