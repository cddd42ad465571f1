"""The parts of the api function."""

import secrets
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from msgspec.structs import replace

from duewheel.rules import cursors
from duewheel.rules.access.api_keys import ID_RANGE, SECRET_BYTES
from duewheel.rules.access.grants import Access, Callers
from duewheel.rules.bulk.requests import RANDOM_BYTES
from duewheel.rules.callbacks.allowed_targets import AllowedTargets
from duewheel.rules.delivery.circuit_breaker import MARK_BYTES
from duewheel.stores.access.api_key_changes import ApiKeyChanges
from duewheel.stores.history.change_records import ChangeRecords
from duewheel.stores.sweep.audit_reads import AuditStore
from duewheel.wiring.access import api_keys
from duewheel.wiring.businesses import (
    business_cache,
    businesses,
    health_store,
    parking_records,
    pausing,
    permits,
    secret_store,
    seen_businesses,
)
from duewheel.wiring.changing import dead_index, list_index, task_walk
from duewheel.wiring.creating import cancel_task
from duewheel.wiring.open_operations import invoke_bulk, operations
from duewheel.wiring.process import (
    clock,
    dynamodb,
    once,
    origin,
    pointers,
    random_bytes,
    settings,
    shape,
)
from duewheel.wiring.timers import change_timer, counters, end_run, made_once, run_list, timers
from duewheel.wiring.wheel import (
    keys,
    loads,
    pages,
    read_second,
    statistics,
    tasks,
    turns,
)
from duewheel.workflows.access.api_keys import IssueKeys, ListKeys
from duewheel.workflows.bulk.operations import CreateOperation, ReadOperations, StopOperation
from duewheel.workflows.businesses.all_businesses import AllBusinesses
from duewheel.workflows.businesses.configure import ConfigureBusiness
from duewheel.workflows.businesses.known import KnownBusinesses
from duewheel.workflows.businesses.probe_host import ProbeHost
from duewheel.workflows.businesses.read import READERS as SIGN_READERS
from duewheel.workflows.businesses.read import ReadBusinesses, ReadUsage, Signs
from duewheel.workflows.history.read_changes import ReadChanges
from duewheel.workflows.sweep.audit import READERS as AUDIT_READERS
from duewheel.workflows.sweep.audit import Audit
from duewheel.workflows.sweep.delete_business import DeleteBusiness
from duewheel.workflows.sweep.read_overview import READERS as OVERVIEW_READERS
from duewheel.workflows.sweep.read_overview import ReadOverview
from duewheel.workflows.sweep.read_statistics import READERS as SECOND_READERS
from duewheel.workflows.sweep.read_statistics import ReadStatistics
from duewheel.workflows.tasks.callback_now import CallbackNow
from duewheel.workflows.tasks.dead_tasks import DeadTasks
from duewheel.workflows.tasks.key_prefix import KeyPrefix
from duewheel.workflows.tasks.list_tasks import ListTasks
from duewheel.workflows.tasks.why_waiting import WhyWaiting
from duewheel.workflows.timers.read_timers import ReadTimers
from duewheel.workflows.wheel.read_status import ReadWheel


@once
def callers() -> Callers:
    config = settings()
    return Callers(config.auth_mode, config.allowed_targets.scope.account, config.iam_default)


def access(authorizer: Mapping[str, Any]) -> Access:
    """Of the caller as API Gateway has authenticated it."""
    return callers().access(authorizer, clock().now_ms())


@once
def allowed_targets() -> AllowedTargets:
    return settings().allowed_targets


@once
def why_waiting() -> WhyWaiting:
    return WhyWaiting(
        clock=clock(),
        store=replace(businesses(), reads_health=True),
        pages=pages(),
        permits=permits(),
        turns=turns(),
        pointers=pointers(),
        origin=origin(),
        as_called=end_run().as_called,
    )


@once
def callback_now() -> CallbackNow:
    return CallbackNow(business_cache(), end_run().as_called)


@once
def list_tasks() -> ListTasks:
    return ListTasks(
        walk=task_walk(),
        all_businesses=AllBusinesses(known_businesses()),
        secret=cursor_secret(),
    )


@once
def cursor_secret() -> bytes:
    return cursors.secret_of(shape().secret)


@once
def configure_business() -> ConfigureBusiness:
    return ConfigureBusiness(
        clock=clock(),
        store=businesses(),
        known=business_cache(),
        secret_store=secret_store(),
        pausing=pausing(),
    )


@once
def probe_host() -> ProbeHost:
    return ProbeHost(
        clock=clock(),
        health_store=health_store(),
        random_bytes=partial(random_bytes(), MARK_BYTES),
    )


@once
def known_businesses() -> KnownBusinesses:
    return KnownBusinesses(businesses(), seen_businesses())


@once
def read_businesses() -> ReadBusinesses:
    signs = Signs(
        seen=seen_businesses(),
        statistics=statistics(),
        timers=timers(),
        index=list_index() if settings().list_index else None,
        readers=ThreadPoolExecutor(SIGN_READERS),
    )
    read_usage = ReadUsage(
        clock=clock(),
        turns=turns(),
        permits=permits(),
        pointers=pointers(),
        origin=origin(),
    )
    return ReadBusinesses(
        store=replace(businesses(), reads_health=True),
        known=known_businesses(),
        signs=signs,
        read_usage=read_usage,
        secret=cursor_secret(),
    )


@once
def read_changes() -> ReadChanges:
    records = ChangeRecords(dynamodb(), settings().registry_table)
    return ReadChanges(clock(), records, businesses(), timers())


@once
def delete_business() -> DeleteBusiness:
    return DeleteBusiness(
        store=businesses(),
        known=business_cache(),
        secret_store=secret_store(),
        list_tasks=list_tasks(),
        cancel_task=cancel_task(),
        secret=cursor_secret(),
        pausing=pausing(),
        timers=timers(),
        change_timer=change_timer(),
    )


@once
def dead_tasks() -> DeadTasks:
    return DeadTasks(task_walk(), cursor_secret())


@once
def key_prefix() -> KeyPrefix:
    return KeyPrefix(keys(), cancel_task(), cursor_secret())


@once
def issue_keys() -> IssueKeys:
    return IssueKeys(
        clock=clock(),
        keys=api_keys(),
        changes=ApiKeyChanges(dynamodb(), settings().registry_table),
        random_number=lambda: secrets.randbelow(ID_RANGE),
        random_bytes=lambda: secrets.token_bytes(SECRET_BYTES),
    )


@once
def list_keys() -> ListKeys:
    return ListKeys(clock(), api_keys(), cursor_secret())


@once
def read_statistics() -> ReadStatistics:
    readers = ThreadPoolExecutor(SECOND_READERS)
    return ReadStatistics(
        clock=clock(),
        pointers=pointers(),
        origin=origin(),
        read_second=read_second(),
        statistics=statistics(),
        readers=readers,
    )


@once
def read_overview() -> ReadOverview:
    return ReadOverview(
        clock=clock(),
        pointers=pointers(),
        origin=origin(),
        businesses=read_businesses(),
        statistics=statistics(),
        index=dead_index(),
        operations=operations(),
        tasks=tasks(),
        readers=ThreadPoolExecutor(OVERVIEW_READERS),
        secret=cursor_secret(),
    )


@once
def audit() -> Audit:
    return Audit(
        clock=clock(),
        pointers=pointers(),
        origin=origin(),
        store=AuditStore(tasks(), parking_records()),
        readers=ThreadPoolExecutor(AUDIT_READERS),
        secret=cursor_secret(),
    )


@once
def read_wheel() -> ReadWheel:
    config = settings()
    return ReadWheel(
        clock=clock(),
        pointers=pointers(),
        loads=loads(),
        origin=origin(),
        buckets=config.buckets,
    )


@once
def read_timers() -> ReadTimers:
    return ReadTimers(
        clock=clock(),
        timers=timers(),
        tasks=tasks(),
        counters=counters(),
        run_list=run_list(),
        all_businesses=AllBusinesses(known_businesses()),
        secret=cursor_secret(),
    )


@once
def create_operation() -> CreateOperation:
    return CreateOperation(
        clock=clock(),
        store=operations(),
        made_once=made_once(),
        check_list_index=lambda query: task_walk().check_is_on(query),
        random_bytes=partial(random_bytes(), RANDOM_BYTES),
        wake=invoke_bulk(),
    )


@once
def read_operations() -> ReadOperations:
    return ReadOperations(
        store=operations(),
        all_businesses=AllBusinesses(known_businesses()),
        secret=cursor_secret(),
    )


@once
def stop_operation() -> StopOperation:
    return StopOperation(read_operations(), invoke_bulk())
