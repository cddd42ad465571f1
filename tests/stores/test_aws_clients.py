"""The common configuration of all AWS clients."""

import json
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse
from botocore.exceptions import ClientError
from botocore.session import Session

from duewheel import __version__
from duewheel.stores import aws_clients
from tests.support.cases import each_case


class Sent(Exception):
    """Raised instead of the answer to a request."""


def sends(request: Any, **_: object) -> None:
    raise Sent(request.headers["User-Agent"])


@each_case(
    ("client", "call"),
    [
        (aws_clients.dynamodb_client, "list_tables"),
        (aws_clients.sqs_client, "list_queues"),
        (aws_clients.lambda_client, "list_functions"),
        (lambda: aws_clients.TargetClients(5, 1).of("sns"), "list_topics"),
    ],
)
def test_a_request_has_the_user_agent_of_the_service(client: Any, call: str) -> None:
    asked = client()
    asked.meta.events.register("before-send", sends)
    with pytest.raises(Sent, match=rf"duewheel/{__version__} Botocore/\d[\d.]*\b"):
        getattr(asked, call)()


def answered_with(body: bytes, status: int = 200) -> Any:
    """A given answer of DynamoDB, without a request."""

    def answer(request: Any, **_: object) -> AWSResponse:
        headers = {"x-amzn-requestid": "r", "date": "Fri, 15 Jan 2027 08:00:00 GMT"}
        response = AWSResponse(request.url, status, headers, None)
        response._content = body  # type: ignore[attr-defined]
        return response

    return answer


@pytest.mark.parametrize(
    "item",
    [
        {},
        {"place": {"S": 'é "B" \ud83d\udd14'}, "version": {"N": "17"}, "parked": {"BOOL": True}},
        {"digest": {"B": "AAECAw=="}, "place": {"S": "p"}},
        {"digests": {"BS": ["AAECAw=="]}, "names": {"SS": ["a", "b"]}, "gone": {"NULL": True}},
        {"nested": {"M": {"list": {"L": [{"N": "1"}, {"M": {"deep": {"B": "AA=="}}}]}}}},
    ],
    ids=["empty", "usual", "bytes", "sets", "nested"],
)
def test_the_fast_parser_of_queries_gives_the_answer_of_the_sdk(item: Any) -> None:
    key = {"slot": {"S": "0.0"}, "place": {"S": "p"}}
    body = {"Items": [item, item], "Count": 2, "ScannedCount": 3, "LastEvaluatedKey": key}
    answers = []
    for client in (aws_clients.dynamodb_client(), Session().create_client("dynamodb")):
        client.meta.events.register("before-send", answered_with(json.dumps(body).encode()))
        answers.append(client.query(TableName="wheel"))
    assert answers[0] == answers[1]


def test_a_refused_query_raises() -> None:
    client = aws_clients.dynamodb_client()
    body = b'{"__type": "com.amazon.coral.service#ValidationException", "message": "no"}'
    client.meta.events.register("before-send", answered_with(body, 400))
    with pytest.raises(ClientError, match=r"ValidationException.*: no"):
        client.query(TableName="wheel")
