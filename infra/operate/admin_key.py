"""`make admin-key STACK=name`: put a first API key into a stack, an admin of all businesses.

It uses the operator's own AWS credentials and not the HTTP interface, which may have no caller yet.
They need `cloudformation:DescribeStacks` on the stack, `dynamodb:Query`, `dynamodb:GetItem`,
`dynamodb:PutItem` and `dynamodb:UpdateItem` on its Registry, and the right to decrypt with your key
if that encrypts the tables. The key is printed once and cannot be read again; if it is lost, make
another.
"""

import argparse
import secrets
import sys
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from duewheel.clock import Clock, SystemClock
from duewheel.rules.access.api_keys import ID_RANGE, SECRET_BYTES
from duewheel.rules.access.grants import ANYTHING, Access
from duewheel.rules.access.requests import FIRST_ADMIN
from duewheel.rules.refusals import Refusal
from duewheel.stores.access.api_key_changes import ApiKeyChanges
from duewheel.stores.access.api_keys import ApiKeyStore
from duewheel.workflows.access.api_keys import Issued, IssueKeys
from infra.operate.region import take_region

_OUTPUT = "RegistryTable"


class NoSuchStack(Exception):
    """No stack of this service has this name."""


def outputs_of(cloudformation: Any, stack: str) -> dict[str, str]:
    (described,) = cloudformation.describe_stacks(StackName=stack)["Stacks"]
    outputs = {one["OutputKey"]: str(one["OutputValue"]) for one in described.get("Outputs", [])}
    if _OUTPUT not in outputs:
        raise NoSuchStack(f"{stack} has no output {_OUTPUT}: it is no stack of this service.")
    return outputs


def registry_of(cloudformation: Any, stack: str) -> str:
    return outputs_of(cloudformation, stack)[_OUTPUT]


def issued(dynamodb: Any, table: str, operator: str, clock: Clock) -> Issued:
    issue = IssueKeys(
        clock=clock,
        keys=ApiKeyStore(dynamodb, table),
        changes=ApiKeyChanges(dynamodb, table),
        random_number=lambda: secrets.randbelow(ID_RANGE),
        random_bytes=lambda: secrets.token_bytes(SECRET_BYTES),
    )
    return issue.create(FIRST_ADMIN, Access(operator, ANYTHING.access.grants))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make admin-key", description=__doc__)
    parser.add_argument("stack", help="the name of the deployed stack")
    args = parser.parse_args(arguments)
    try:
        take_region()
        table = registry_of(boto3.client("cloudformation"), args.stack)
        operator = boto3.client("sts").get_caller_identity()["Arn"]
        made = issued(boto3.client("dynamodb"), table, operator, SystemClock())
    except (BotoCoreError, ClientError, NoSuchStack, Refusal) as error:
        print(f"No key was made: {error}", file=sys.stderr)
        return 1
    print(made.text)
    print(f"The id of this key is {made.key.key_id}. It is not shown again.", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
