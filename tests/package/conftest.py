"""Builds, moto's server and booted functions for the package tests (`make package-test`)."""

import platform
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import boto3
import pytest

from local.aws.resources import Resources, create_resources
from local.aws.template import REGION
from tests.package.aws_server import AwsServer
from tests.package.built_package import BuiltPackage
from tests.package.event_source import EventSource
from tests.package.lambda_environment import LambdaEnvironment, Platform, find_platform
from tests.support.by_verb import given, said
from tests.support.by_verb import pytest_terminal_summary as pytest_terminal_summary
from tests.support.http_receiver import Receiver

ARCHITECTURES = ("arm64", "x86_64")
OWN_ARCHITECTURE = {"x86_64": "x86_64", "aarch64": "arm64"}.get(platform.machine(), "")
SCHEDULER_RUNS_SECONDS = 20  # it stops ten seconds before its end

Boot = Callable[[str], LambdaEnvironment]
_given = partial(given, verb="package-test")


@pytest.fixture(scope="session")
def packages() -> dict[str, BuiltPackage]:
    folder = _given("PACKAGES")
    return {name: BuiltPackage((folder / name).resolve()) for name in ARCHITECTURES}


@pytest.fixture(scope="session")
def lambda_platform(packages: dict[str, BuiltPackage]) -> Platform:
    found = find_platform(_given("PYTHON313_BIN"), _given("RUNTIME_CLIENT"))
    said.append(
        "functions ran at /var/task with their layers at /opt, in private mounts"
        if found.mounts
        else "no private mounts here (they need root or user namespaces): functions ran where"
        " they were built, through PYTHONPATH"
    )
    return found


@pytest.fixture(scope="module")
def aws_server() -> Iterator[AwsServer]:
    server = AwsServer()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def aws(aws_server: AwsServer) -> Callable[[str], Any]:
    """Makes a client of moto's server, independent of the environment of the tests."""
    session = boto3.Session("the-test", "testing", region_name=REGION)
    return lambda service: session.client(service, endpoint_url=aws_server.endpoint)


@pytest.fixture(scope="module")
def resources(packages: dict[str, BuiltPackage], aws: Callable[[str], Any]) -> Resources:
    template = packages[OWN_ARCHITECTURE].template
    return create_resources(template, aws("dynamodb"), aws("sqs"))


@pytest.fixture(scope="module")
def slice_queue(resources: Resources, aws: Callable[[str], Any]) -> EventSource:
    return EventSource(aws("sqs"), resources.queue_url("SliceQueue"))


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.stop()


@pytest.fixture(scope="module")
def boot(
    packages: dict[str, BuiltPackage],
    resources: Resources,
    lambda_platform: Platform,
    aws_server: AwsServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Boot]:
    functions = packages[OWN_ARCHITECTURE].functions(resources)
    booted: dict[str, LambdaEnvironment] = {}

    def environment_of(name: str) -> LambdaEnvironment:
        if name not in booted:
            booted[name] = LambdaEnvironment(
                functions[name],
                lambda_platform,
                tmp_path_factory.mktemp(name),
                {
                    "AWS_ENDPOINT_URL": aws_server.endpoint,
                    "AWS_REGION": REGION,
                    "AWS_DEFAULT_REGION": REGION,
                    "AWS_ACCESS_KEY_ID": name,
                    "AWS_SECRET_ACCESS_KEY": "testing",
                    "AWS_SESSION_TOKEN": "testing",
                    "ALLOWED_PRIVATE_CIDRS": "127.0.0.0/8",
                    "AUTH_MODE": "iam",  # the sample requests are signed
                    "IAM_DEFAULT": "admin",
                },
                SCHEDULER_RUNS_SECONDS if name == "SchedulerFunction" else None,
            )
        return booted[name]

    yield environment_of
    for environment in booted.values():
        environment.stop()
