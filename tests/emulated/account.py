"""Other things in the account beside the stacks: a team's own key, network and targets of tasks.

Most are named `target`. Topic, bus and queue all lead to one queue, whose messages are read here.
"""

import io
import json
import zipfile
from collections.abc import Mapping
from typing import Any

from local.aws.template import ACCOUNT_ID, REGION
from tests.emulated.emulator import Emulator

NAME = "target"
WHOLE = "duewheel-whole"  # the stack with all parameters
ASKING = f"{WHOLE}-asking"
_FUNCTION = "def handler(event, context):\n    return {'got': event['payload']}\n"
_ROLE = f"arn:aws:iam::{ACCOUNT_ID}:role/{NAME}"


class Account:
    def __init__(self, emulator: Emulator) -> None:
        self._emulator = emulator
        self.key_arn: str = emulator.client("kms").create_key()["KeyMetadata"]["Arn"]
        anything = {"Effect": "Allow", "Action": "*", "Resource": "*"}
        self.boundary_arn: str = emulator.client("iam").create_policy(
            PolicyName=NAME, PolicyDocument=_policy(anything)
        )["Policy"]["Arn"]
        self.subnet, self.security_group = self._network()
        self.queue_arn = f"arn:aws:sqs:{REGION}:{ACCOUNT_ID}:{NAME}"
        self._queue_url = self._queue()
        self.topic_arn: str = emulator.client("sns").create_topic(Name=NAME)["TopicArn"]
        self.subscribe(self.topic_arn)
        self.event_bus_arn = self._event_bus()
        self.function_arn = self._function()

    def subscribe(self, topic_arn: str) -> None:
        """Messages of the topic come into the queue unchanged."""
        self._emulator.client("sns").subscribe(
            TopicArn=topic_arn,
            Protocol="sqs",
            Endpoint=self.queue_arn,
            Attributes={"RawMessageDelivery": "true"},
        )

    def messages(self) -> list[str]:
        """The messages since the last call."""
        sqs = self._emulator.client("sqs")
        found = sqs.receive_message(QueueUrl=self._queue_url, MaxNumberOfMessages=10)
        bodies = []
        for message in found.get("Messages", []):
            sqs.delete_message(QueueUrl=self._queue_url, ReceiptHandle=message["ReceiptHandle"])
            bodies.append(message["Body"])
        return bodies

    def _network(self) -> tuple[str, str]:
        ec2 = self._emulator.client("ec2")
        vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/24")["Subnet"]["SubnetId"]
        group = ec2.create_security_group(GroupName=NAME, Description=NAME, VpcId=vpc)["GroupId"]
        return subnet, group

    def _queue(self) -> str:
        allowed = {
            "Effect": "Allow",
            "Principal": {"Service": ["sns.amazonaws.com", "events.amazonaws.com"]},
            "Action": "sqs:SendMessage",
            "Resource": self.queue_arn,
        }
        made = self._emulator.client("sqs").create_queue(
            QueueName=NAME, Attributes={"Policy": _policy(allowed)}
        )
        url: str = made["QueueUrl"]
        return url

    def _event_bus(self) -> str:
        events = self._emulator.client("events")
        arn: str = events.create_event_bus(Name=NAME)["EventBusArn"]
        pattern = json.dumps({"source": [NAME]})
        events.put_rule(Name=NAME, EventBusName=NAME, EventPattern=pattern)
        events.put_targets(
            Rule=NAME, EventBusName=NAME, Targets=[{"Id": NAME, "Arn": self.queue_arn}]
        )
        return arn

    def ask_by_event(self, queue_arn: str, body: Mapping[str, Any]) -> None:
        """A rule that is named for the stack sends the detail of the event, the body of a task."""
        events = self._emulator.client("events")
        events.put_rule(Name=ASKING, EventPattern=json.dumps({"source": [ASKING]}))
        target = {"Id": ASKING, "Arn": queue_arn, "InputPath": "$.detail"}
        events.put_targets(Rule=ASKING, Targets=[target])
        entry = {"Source": ASKING, "DetailType": ASKING, "Detail": json.dumps(body)}
        assert events.put_events(Entries=[entry])["FailedEntryCount"] == 0

    def _function(self) -> str:
        assumed = {
            "Effect": "Allow",
            "Principal": {"Service": "lambda.amazonaws.com"},
            "Action": "sts:AssumeRole",
        }
        self._emulator.client("iam").create_role(
            RoleName=NAME, AssumeRolePolicyDocument=_policy(assumed)
        )
        code = io.BytesIO()
        with zipfile.ZipFile(code, "w") as archive:
            archive.writestr("app.py", _FUNCTION)
        made = self._emulator.client("lambda").create_function(
            FunctionName=NAME,
            Runtime="python3.13",
            Handler="app.handler",
            Role=_ROLE,
            Code={"ZipFile": code.getvalue()},
        )
        arn: str = made["FunctionArn"]
        return arn


def _policy(statement: Mapping[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


# Parameters that ministack 1.5.33 cannot carry out, with the reason.
LACKING = {
    "Capacity": "it has no types of Application Auto Scaling",
}


def everything_on(account: Account) -> dict[str, str]:
    """All other parameters, with values that reverse each condition of the template's defaults."""
    return {
        "RetentionDays": "7",
        "AllowedPrivateCidrs": "127.0.0.0/8",
        "ListIndex": "off",
        "SubnetIds": account.subnet,
        "SecurityGroupIds": account.security_group,
        "TargetArns": ",".join(
            (
                account.function_arn,
                account.queue_arn,
                account.topic_arn,
                account.event_bus_arn,
                "arn:aws:states:us-east-1:000000000000:stateMachine:orders",
            )
        ),
        "AuthMode": "keys",
        "IamDefault": "read",
        "DomainName": "timers.example.com",
        "CertificateArn": "arn:aws:acm:us-east-1:000000000000:certificate/0f5a2c9e",
        "IngestBusinesses": "orders",
        "StackTimersAs": "duewheel-write",
        "NotifierConcurrency": "500",
        "ProvisionedPollers": "2",
        "ApiRequestsPerSecond": "500",
        "TasksPerDayAlarm": "1000000",
        "KmsKeyArn": account.key_arn,
        "PermissionsBoundaryArn": account.boundary_arn,
        "LogRetentionDays": "14",
        "Observability": "full",
        "AlarmEmail": "operators@example.com",
    }
