"""What all clients have in common."""

from typing import Any

import pytest

from duewheel import __version__
from duewheel.stores import aws_clients
from tests.support.cases import each_case


class Sent(Exception):
    """In the place of what a request would be answered."""


def sends(request: Any, **_: object) -> None:
    raise Sent(request.headers["User-Agent"])


@each_case(
    ("client", "call"),
    [
        (aws_clients.dynamodb_client, "list_tables"),
        (aws_clients.sqs_client, "list_queues"),
        (aws_clients.kms_client, "list_keys"),
        (aws_clients.lambda_client, "list_functions"),
        (lambda: aws_clients.TargetClients(5, 1).of("sns"), "list_topics"),
    ],
)
def test_a_request_says_whose_it_is(client: Any, call: str) -> None:
    asked = client()
    asked.meta.events.register("before-send", sends)
    with pytest.raises(Sent, match=rf"duewheel/{__version__} Botocore/\d[\d.]*\b"):
        getattr(asked, call)()
