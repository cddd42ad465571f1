"""The parts of functions that read businesses."""

import secrets

from msgspec.structs import replace

from duewheel.rules.delivery.parked_tasks import PAUSE_MARK_BYTES
from duewheel.stores.businesses.cache import BusinessCache
from duewheel.stores.businesses.health import HealthStore
from duewheel.stores.businesses.parking_state import ParkingRecords
from duewheel.stores.businesses.permits import PermitStore
from duewheel.stores.businesses.secret_store import SecretStore, SecretTable
from duewheel.stores.businesses.settings import BusinessStore
from duewheel.stores.sweep.seen_businesses import SeenBusinesses
from duewheel.wiring.process import (
    clock,
    dynamodb,
    message_sender,
    once,
    random_bytes,
    settings,
)
from duewheel.workflows.businesses.configure import Pausing


@once
def businesses() -> BusinessStore:
    config = settings()
    return BusinessStore(
        client=dynamodb(),
        clock=clock(),
        table=config.registry_table,
        defaults=config.business_defaults,
    )


@once
def business_cache() -> BusinessCache:
    return BusinessCache(businesses(), clock())


@once
def businesses_with_health() -> BusinessCache:
    """The notifier reads the health of a business with its settings."""
    return BusinessCache(replace(businesses(), reads_health=True), clock())


@once
def seen_businesses() -> SeenBusinesses:
    return SeenBusinesses(client=dynamodb(), clock=clock(), table=settings().registry_table)


@once
def permits() -> PermitStore:
    return PermitStore(dynamodb(), settings().registry_table)


@once
def health_store() -> HealthStore:
    return HealthStore(dynamodb(), settings().registry_table)


@once
def secret_table() -> SecretTable:
    return SecretTable(dynamodb(), clock(), settings().secrets_table, random_bytes())


@once
def secret_store() -> SecretStore:
    return SecretStore(secret_table())


@once
def pausing() -> Pausing:
    return Pausing(
        parking_records(), message_sender(), lambda: secrets.token_urlsafe(PAUSE_MARK_BYTES)
    )


@once
def parking_records() -> ParkingRecords:
    return ParkingRecords(dynamodb(), clock(), settings().registry_table)
