"""Fixtures on moto with the resources of the real template; every instant comes from one clock."""

import gc
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import boto3
import pytest
from hypothesis import settings as hypothesis_settings

from local.aws.calling_function import asking, pools_keep_the_context
from local.aws.emulator import Emulator
from local.aws.permissions import taken_refusals
from local.aws.resources import Resources, create_resources
from local.aws.template import Template, load_template
from tests.simulation.virtual_time import VirtualLoop
from tests.support.aws_guard import AwsGuard
from tests.support.bounds import SECOND_OPINION, Bounds, ProcessesBegun
from tests.support.clock import ManualClock
from tests.support.empty_resources import EmptyResources
from tests.support.one_core import stay_on_core
from tests.support.rights_in_use import RightsInUse
from tests.support.second_opinion import SecondOpinion, Server
from tests.support.world import World

TEMPLATE = Path(__file__).parents[1] / "template.yaml"

hypothesis_settings.register_profile("quick", deadline=None, max_examples=8, derandomize=True)
hypothesis_settings.register_profile("suite", deadline=None, max_examples=60, derandomize=True)
hypothesis_settings.register_profile("prove", deadline=None, max_examples=400)  # new ones
hypothesis_settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))

if worker := os.environ.get("PYTEST_XDIST_WORKER"):
    stay_on_core(int(worker.removeprefix("gw")))


_guard = AwsGuard()
_guard.guard_all_clients()
_bounds = Bounds(
    {
        "AWS calls": lambda: _guard.calls,
        "steps of simulated time": lambda: VirtualLoop.steps,
        "Python processes": ProcessesBegun(),
    }
)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(RightsInUse(config))
    config.pluginmanager.register(_bounds)


def pytest_collection_finish() -> None:
    """A fifth of the tests' time was spent on collecting garbage among objects that are never
    freed."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)


asking.set(None)  # a test's own requests need no permission


@pytest.fixture(autouse=True, scope="session")
def _pools_keep_the_calling_function() -> Iterator[None]:
    with pools_keep_the_context():
        yield


@pytest.fixture(autouse=True, scope="session")
def _the_sdk_retries_without_a_pause() -> Iterator[None]:
    with patch("botocore.endpoint.time", SimpleNamespace(sleep=lambda seconds: None)):
        yield


@pytest.fixture(autouse=True)
def aws_guard() -> Iterator[AwsGuard]:
    """Every request of every test passes it, including those of the local stack and the
    simulation."""
    _guard.taken()
    yield _guard
    assert _guard.taken() == []


@pytest.fixture(autouse=True)
def _no_call_without_a_right() -> Iterator[None]:
    """Checked even if the function caught the refusal."""
    taken_refusals()
    yield
    assert taken_refusals() == []


@pytest.fixture(autouse=True)
def _no_real_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(scope="session")
def ministack() -> Iterator[Server | None]:
    """The server that answers instead of moto, if there is one: set by `make second-opinion`."""
    python = os.environ.get(SECOND_OPINION)
    server = Server(python) if python else None
    yield server
    if server is not None:
        server.stop()


@pytest.fixture
def emulator(clock: ManualClock, ministack: Server | None) -> Iterator[Emulator]:
    with Emulator(clock) if ministack is None else SecondOpinion(clock, ministack) as running:
        yield running


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The models of protocols, which take longest, begin first: at the end one worker would wait
    for the other."""
    items.sort(key=lambda item: not item.path.name.endswith("_protocol.py"))
    left_out = "moto_only" if SECOND_OPINION in os.environ else "ministack_only"
    for item in items:
        if marked := item.get_closest_marker(left_out):
            item.add_marker(pytest.mark.skip(reason=marked.kwargs["reason"]))


@cache
def the_template() -> Template:
    """With API keys, the ingest queue and timers as resources there are three functions more."""
    return load_template(
        TEMPLATE, {"AuthMode": "keys", "IngestBusinesses": "*", "StackTimersAs": "duewheel-write"}
    )


@cache
def empty_resources() -> EmptyResources:
    return EmptyResources(the_template())


@pytest.fixture
def resources(emulator: Emulator) -> Resources:
    if isinstance(emulator, SecondOpinion):
        return create_resources(the_template(), boto3.client("dynamodb"), boto3.client("sqs"))
    return empty_resources()()


@pytest.fixture
def world(emulator: Emulator, resources: Resources, clock: ManualClock) -> Iterator[World]:
    world = World(emulator, resources, clock)
    yield world
    world.close()
