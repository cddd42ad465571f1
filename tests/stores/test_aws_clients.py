"""What all clients have in common."""

from typing import Any

import pytest

from duewheel import __version__
from duewheel.stores import aws_clients


@pytest.mark.parametrize(
    "client",
    [
        aws_clients.dynamodb_client,
        aws_clients.sqs_client,
        aws_clients.kms_client,
        aws_clients.lambda_client,
        lambda: aws_clients.TargetClients(5, 1).of("sns"),
    ],
    ids=["dynamodb", "sqs", "kms", "lambda", "targets"],
)
def test_a_client_says_whose_it_is(client: Any) -> None:
    config = client().meta.config
    assert config.user_agent.startswith(f"duewheel/{__version__} Botocore/")
