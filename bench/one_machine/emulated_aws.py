"""The emulator in a process of its own, behind a port, as AWS is for the service.

So its CPU time is measured separately, and the service can be killed without it. It answers for
DynamoDB and SQS.

python -m bench.one_machine.emulated_aws # prints its port, serves until it is ended
"""

import json
import threading
import time
from functools import partial

from botocore.awsrequest import AWSPreparedRequest
from moto.core.models import botocore_stubber

from duewheel.clock import SystemClock
from local.aws.emulator import Emulator, collect_rarely
from local.aws.http_api import Reply, Request
from local.aws.template import REGION
from local.http_front import HttpFront

HOSTS = {"DynamoDB_20120810": "dynamodb", "AmazonSQS": "sqs"}
LOOK_EVERY_SECONDS = 0.01


def answer(emulator: Emulator, request: Request) -> Reply:
    headers = dict(request.headers)
    prefix, _, operation = headers["X-Amz-Target"].partition(".")
    body = request.body
    if operation == "ReceiveMessage":
        body = after_waiting(emulator, body)
        headers["Content-Length"] = str(len(body))
    url = f"https://{HOSTS[prefix]}.{REGION}.amazonaws.com{request.target}"
    sent = AWSPreparedRequest(request.method, url, headers, body, stream_output=False)
    status, replied, body = botocore_stubber.process_request(sent)
    named = tuple((str(name), str(value)) for name, value in replied.items())
    return Reply(
        status,
        body.encode() if isinstance(body, str) else body,
        tuple(pair for pair in named if pair[0].lower() != "content-length"),
    )


def after_waiting(emulator: Emulator, body: bytes) -> bytes:
    """The request of a long poll, as one that does not wait: until there is a message, or the wait
    is over."""
    asked = json.loads(body)
    until = time.monotonic() + asked.get("WaitTimeSeconds", 0)
    while not emulator.has_visible(asked["QueueUrl"]) and time.monotonic() < until:
        time.sleep(LOOK_EVERY_SECONDS)
    return json.dumps({**asked, "WaitTimeSeconds": 0}).encode()


def main() -> None:
    with Emulator(SystemClock()) as emulator:
        front = HttpFront(0, partial(answer, emulator))
        front.start()
        collect_rarely()
        print(front.port, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
