"""What functions need that look API keys up."""

from duewheel.stores.access.api_keys import ApiKeyStore
from duewheel.wiring.process import dynamodb, once, settings


@once
def api_keys() -> ApiKeyStore:
    return ApiKeyStore(dynamodb(), settings().registry_table)
