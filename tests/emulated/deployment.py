"""A stack that `sam deploy` made of the built package, and calls of the URL that it printed."""

import json
import ssl
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from local.template import ACCOUNT_ID, REGION
from tests.emulated.emulator import Emulator

ROOT = Path(__file__).parents[2]
ALLOWED = "127.0.0.0/8"  # where the receiver listens
DEPLOY_SECONDS_MAX = 300
POLLER_SECONDS_MAX = 30
_POLLER_ERROR = "ESM SQS poller error: '>=' not supported between instances of 'int' and 'str'"


@dataclass(frozen=True, slots=True)
class Deployment:
    emulator: Emulator
    name: str
    outputs: Mapping[str, str]
    resources: Mapping[str, str]  # logical to physical id

    @property
    def api_id(self) -> str:
        return self.resources["HttpApi"]

    def call(
        self, method: str, path: str, body: Any = None, signed_by: Credentials | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, Any]:  # fmt: skip
        url = urlsplit(self.outputs["ApiUrl"])
        data = b"" if body is None else json.dumps(body).encode()
        request = AWSRequest(
            method,
            url.geturl() + path,
            data=data,
            headers={"content-type": "application/json", **(headers or {})},
        )
        if signed_by:
            SigV4Auth(signed_by, "execute-api", REGION).add_auth(request)
        # To loopback, since not every machine resolves the names under localhost.
        trusted = ssl.create_default_context(cafile=self.emulator.certificate)
        connection = HTTPSConnection("127.0.0.1", url.port, timeout=60, context=trusted)
        try:
            connection.request(method, path, data, {**dict(request.headers), "Host": url.netloc})
            reply = connection.getresponse()
            text = reply.read().decode()
        finally:
            connection.close()
        is_json = "json" in reply.headers.get("Content-Type", "")
        return reply.status, json.loads(text) if is_json else text


def deploy(emulator: Emulator, sam: Path, package: Path, name: str, auth_mode: str) -> Deployment:
    """As `make deploy` does, with samconfig.toml, but for the questions."""
    done = subprocess.run(
        [
            sam.resolve(), "deploy",
            "--config-file", ROOT / "samconfig.toml",
            "--template-file", package / "template.yaml",
            "--stack-name", name,
            "--no-confirm-changeset",
            "--no-progressbar",
            "--parameter-overrides", f"AuthMode={auth_mode}", f"AllowedPrivateCidrs={ALLOWED}",
        ],
        env=emulator.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=DEPLOY_SECONDS_MAX,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout}\n{emulator.printed()}"
    return _deployment(emulator, name)


def deploy_again(first: Deployment, name: str, auth_mode: str) -> Deployment:
    """Another stack of the same package, from the template with the places of the code."""
    cloudformation = first.emulator.client("cloudformation")
    template = cloudformation.get_template(StackName=first.name, TemplateStage="Original")
    body = template["TemplateBody"]
    parameters = {"AuthMode": auth_mode, "AllowedPrivateCidrs": ALLOWED}
    cloudformation.create_stack(
        StackName=name,
        TemplateBody=body if isinstance(body, str) else json.dumps(body),
        Parameters=[
            {"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()
        ],
        Capabilities=["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"],
    )
    waiter = cloudformation.get_waiter("stack_create_complete")
    waiter.wait(StackName=name, WaiterConfig={"Delay": 1, "MaxAttempts": DEPLOY_SECONDS_MAX})
    return _deployment(first.emulator, name)


def _deployment(emulator: Emulator, name: str) -> Deployment:
    cloudformation = emulator.client("cloudformation")
    [stack] = cloudformation.describe_stacks(StackName=name)["Stacks"]
    held = cloudformation.describe_stack_resources(StackName=name)["StackResources"]
    deployment = Deployment(
        emulator,
        name,
        {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]},
        {one["LogicalResourceId"]: one["PhysicalResourceId"] for one in held},
    )
    _mend_pollers(deployment)
    return deployment


def _mend_pollers(deployment: Deployment) -> None:
    """MaximumConcurrency: a parameter, which ministack keeps as a text that no poller can compare.

    AWS makes it the number that it is declared as. Fails once ministack does, too.
    """
    _await_poller_error(deployment.emulator)
    functions = deployment.emulator.client("lambda")
    for name in ("NotifierFunctionSlices", "NotifierFunctionSlowPages"):
        uuid = deployment.resources[name]
        declared = functions.get_event_source_mapping(UUID=uuid)["ScalingConfig"]
        functions.update_event_source_mapping(UUID=uuid, ScalingConfig=declared)


def mend_rights(deployment: Deployment) -> None:
    """Who may SendMessage may SendMessageBatch: in AWS, which has no right of that name."""
    iam = deployment.emulator.client("iam")
    for name, role in deployment.resources.items():
        if not name.endswith("Role"):
            continue
        document = iam.get_role_policy(RoleName=role, PolicyName="least")["PolicyDocument"]
        batches = [
            {**statement, "Action": "sqs:SendMessageBatch"}
            for statement in document["Statement"]
            if "sqs:SendMessage" in statement["Action"]
        ]
        if batches:
            added = json.dumps({**document, "Statement": batches})
            iam.put_role_policy(RoleName=role, PolicyName="batches", PolicyDocument=added)


def _await_poller_error(emulator: Emulator) -> None:
    deadline = time.monotonic() + POLLER_SECONDS_MAX
    while _POLLER_ERROR not in emulator.printed():
        assert time.monotonic() < deadline, "the pollers need no mending: leave it out"
        time.sleep(0.2)


def user(emulator: Emulator, name: str, may_call: Deployment | None = None) -> Credentials:
    """A user with an access key, whom IAM lets call the stack's interface, or nothing."""
    iam = emulator.client("iam")
    iam.create_user(UserName=name)
    if may_call:
        resource = f"arn:aws:execute-api:{REGION}:{ACCOUNT_ID}:{may_call.api_id}/*"
        allowed = {"Effect": "Allow", "Action": "execute-api:Invoke", "Resource": resource}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
        iam.put_user_policy(UserName=name, PolicyName="calls", PolicyDocument=policy)
    key = iam.create_access_key(UserName=name)["AccessKey"]
    return Credentials(key["AccessKeyId"], key["SecretAccessKey"])
