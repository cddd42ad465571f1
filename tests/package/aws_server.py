"""moto's server on loopback, which also records the calls of each function.

Each function signs with an access key of its own name, so that its calls can be compared with its
policy, which moto does not enforce.
"""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from io import BytesIO
from threading import Thread
from typing import Any
from urllib.parse import unquote

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

_INVOCATION = re.compile(r"/2015-03-31/functions/([^/]+)/invocations")


@dataclass(frozen=True, slots=True)
class NotedCall:
    access_key: str
    action: str
    resource: str  # a table's name, a queue's URL or a function's name
    index: str = ""  # of the table, as the end of its ARN


class AwsServer:
    def __init__(self) -> None:
        self.calls: set[NotedCall] = set()
        self.queue_refuses = False  # whether SQS refuses messages
        self.invocations: list[Any] = []  # events of asynchronous ones
        self._moto = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True)
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _answer(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = BytesIO(body)
        credential = re.search(r"Credential=([^/]+)", environ.get("HTTP_AUTHORIZATION", ""))
        target = environ.get("HTTP_X_AMZ_TARGET", "")
        if credential and target:
            self.calls.update(_noted(credential[1], target, json.loads(body)))
        invocation = _INVOCATION.fullmatch(unquote(environ["PATH_INFO"]))
        if credential and invocation:
            self.calls.add(NotedCall(credential[1], "lambda:InvokeFunction", invocation[1]))
            self.invocations.append(json.loads(body))
            start_response("202 Accepted", [])
            return [b""]
        if self.queue_refuses and target.startswith("AmazonSQS.Send"):
            start_response("503 Service Unavailable", [])
            return [b"{}"]
        reply: Iterable[bytes] = self._moto(environ, start_response)
        return reply


def _noted(access_key: str, target: str, body: dict[str, Any]) -> Iterable[NotedCall]:
    service, operation = target.split(".")
    if service == "AmazonSQS":
        action = f"sqs:{operation.removesuffix('Batch')}"  # SQS has no separate actions for batches
        yield NotedCall(access_key, action, body.get("QueueUrl", ""))
    elif operation == "TransactWriteItems":
        for item in body["TransactItems"]:
            [(kind, request)] = item.items()
            yield NotedCall(access_key, f"dynamodb:{kind}Item", request["TableName"])
    else:
        index = f"/index/{body['IndexName']}" if "IndexName" in body else ""
        for table in body.get("RequestItems", [body.get("TableName", "")]):
            yield NotedCall(access_key, f"dynamodb:{operation}", table, index)
