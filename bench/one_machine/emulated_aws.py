"""The emulator in a process of its own, behind a port, as AWS is for the service.

So its CPU time is measured separately, and the service can be killed without it. It answers for
DynamoDB and SQS.

python -m bench.one_machine.emulated_aws # prints its port, serves until it is ended
"""

import threading

from botocore.awsrequest import AWSPreparedRequest
from moto.core.models import botocore_stubber

from duewheel.clock import SystemClock
from local.aws.emulator import Emulator
from local.aws.http_api import Reply, Request
from local.aws.template import REGION
from local.http_front import HttpFront

HOSTS = {"DynamoDB_20120810": "dynamodb", "AmazonSQS": "sqs"}


def answer(request: Request) -> Reply:
    headers = dict(request.headers)
    service = HOSTS[headers["X-Amz-Target"].partition(".")[0]]
    url = f"https://{service}.{REGION}.amazonaws.com{request.target}"
    sent = AWSPreparedRequest(request.method, url, headers, request.body, stream_output=False)
    status, replied, body = botocore_stubber.process_request(sent)
    named = tuple((str(name), str(value)) for name, value in replied.items())
    return Reply(
        status,
        body.encode() if isinstance(body, str) else body,
        tuple(pair for pair in named if pair[0].lower() != "content-length"),
    )


def main() -> None:
    with Emulator(SystemClock()):
        front = HttpFront(0, answer)
        front.start()
        print(front.port, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
