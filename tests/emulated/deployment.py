"""A stack that `sam deploy` made from the built package, and calls of the URL that it printed."""

import json
import ssl
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from local.aws.template import REGION
from tests.emulated.emulator import Emulator

ROOT = Path(__file__).parents[2]
DEPLOY_SECONDS_MAX = 600


@dataclass(frozen=True, slots=True)
class Resource:
    id: str  # the physical id
    type: str


@dataclass(frozen=True, slots=True)
class Deployment:
    emulator: Emulator
    name: str
    parameters: Mapping[str, str]  # including defaults
    outputs: Mapping[str, str]
    resources: Mapping[str, Resource]  # by their logical ids
    nested: Mapping[str, Resource]  # those of the nested stack

    def id(self, logical_id: str) -> str:
        return self.resources[logical_id].id

    def of_type(self, type_name: str) -> dict[str, str]:
        """Logical and physical ids, of both stacks."""
        both = {**self.resources, **self.nested}
        return {name: one.id for name, one in both.items() if one.type == type_name}

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
        # To loopback, since not every machine resolves names under localhost.
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


def deploy(
    emulator: Emulator, sam: Path, package: Path, name: str, parameters: Mapping[str, str]
) -> Deployment:
    """Like `make deploy`, with samconfig.toml, but without its questions."""
    done = sam_deploy(emulator, sam, package, name, parameters)
    assert done.returncode == 0, f"{done.stdout}\n{emulator.printed()}"
    return made(emulator, name)


def sam_deploy(
    emulator: Emulator, sam: Path, package: Path, name: str, parameters: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """An update without changes is not a failure."""
    overrides = [f"{key}={value}" for key, value in parameters.items()]
    return subprocess.run(
        [
            sam.resolve(), "deploy",
            "--config-file", ROOT / "samconfig.toml",
            "--template-file", package / "template.yaml",
            "--stack-name", name,
            "--no-confirm-changeset",
            "--no-progressbar",
            "--no-fail-on-empty-changeset",
            *(["--parameter-overrides", *overrides] if overrides else []),
        ],
        env=emulator.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=DEPLOY_SECONDS_MAX,
        check=False,
    )  # fmt: skip


def delete(stack: Deployment) -> None:
    """Also deletes the retained resources, except for the key."""
    cloudformation, dynamodb = map(stack.emulator.client, ("cloudformation", "dynamodb"))
    cloudformation.delete_stack(StackName=stack.name)
    cloudformation.get_waiter("stack_delete_complete").wait(
        StackName=stack.name, WaiterConfig={"Delay": 1, "MaxAttempts": 60}
    )
    for table in stack.of_type("AWS::DynamoDB::Table").values():
        dynamodb.update_table(TableName=table, DeletionProtectionEnabled=False)
        dynamodb.delete_table(TableName=table)


def deploy_again(first: Deployment, name: str, parameters: Mapping[str, str]) -> Deployment:
    """Another stack from the same package, from the template with the places of the uploaded
    code."""
    cloudformation = first.emulator.client("cloudformation")
    cloudformation.create_stack(
        StackName=name,
        TemplateURL=_uploaded_template(first),
        Parameters=[
            {"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()
        ],
        Capabilities=["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"],
    )
    waiter = cloudformation.get_waiter("stack_create_complete")
    waiter.wait(StackName=name, WaiterConfig={"Delay": 1, "MaxAttempts": DEPLOY_SECONDS_MAX})
    return made(first.emulator, name)


def _uploaded_template(stack: Deployment) -> str:
    """The template is too long to be sent with the request."""
    cloudformation, s3 = map(stack.emulator.client, ("cloudformation", "s3"))
    template = cloudformation.get_template(StackName=stack.name, TemplateStage="Original")
    s3.create_bucket(Bucket=stack.name)
    s3.put_object(Bucket=stack.name, Key="template", Body=template["TemplateBody"])
    return f"{stack.emulator.endpoint}/{stack.name}/template"


def made(emulator: Emulator, name: str) -> Deployment:
    cloudformation = emulator.client("cloudformation")
    [stack] = cloudformation.describe_stacks(StackName=name)["Stacks"]
    resources = _resources(cloudformation, name)
    within = resources.get("ObservabilityStack")
    return Deployment(
        emulator,
        name,
        {one["ParameterKey"]: one["ParameterValue"] for one in stack["Parameters"]},
        {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]},
        resources,
        _resources(cloudformation, within.id) if within else {},
    )


def _resources(cloudformation: Any, stack: str) -> dict[str, Resource]:
    held = cloudformation.describe_stack_resources(StackName=stack)["StackResources"]
    return {
        one["LogicalResourceId"]: Resource(one["PhysicalResourceId"], one["ResourceType"])
        for one in held
    }
