"""Passes the usual DynamoDB and SQS calls of the SDK to the emulator without an HTTP request.

Invariant: same answers, same errors, and the same events before and after a call. A call's
parameters are checked by the service's model and passed as the JSON of the request; the result is
the JSON of the answer. Calls with binary values, and other services, are left to the SDK. A refused
call is tried again by the SDK's own rules.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from botocore import awsrequest, client, endpoint
from botocore.awsrequest import AWSPreparedRequest
from moto.core.models import botocore_stubber

from local.aws.patches.short_way import is_left_to_moto, target_of, url_of

# Its stubs leave them out.
_Client: Any = vars(client)["BaseClient"]
_Endpoint: Any = vars(endpoint)["Endpoint"]
_Headers: Any = vars(awsrequest)["HeadersDict"]
_any_resolve = _Client._resolve_endpoint_ruleset
_any_convert = _Client._convert_to_request_dict
_any_send = _Endpoint._send_request

_BINARY = '"B'  # of a value, or of a set of values


@contextmanager
def calls_without_http() -> Iterator[None]:
    with ExitStack() as patched:
        for target, name, replacement in (
            (_Client, "_resolve_endpoint_ruleset", _resolve),
            (_Client, "_convert_to_request_dict", _convert),
            (_Endpoint, "_send_request", _send),
        ):
            patched.enter_context(patch.object(target, name, replacement))
        yield


def _is_usual(client: Any, operation_model: Any) -> bool:
    service = client.meta.service_model.service_name
    is_known = target_of(service, operation_model.name) is not None
    return is_known and bool(f"{client.meta.endpoint_url}/" == url_of(service))


def _resolve(client: Any, operation_model: Any, *arguments: Any, **named: Any) -> Any:
    if _is_usual(client, operation_model):
        return client.meta.endpoint_url, {}, {}
    return _any_resolve(client, operation_model, *arguments, **named)


def _convert(
    client: Any, api_params: Any, operation_model: Any, endpoint_url: str, context: Any, **more: Any
) -> Any:
    """A request that `_send` knows by its context; else the SDK's."""
    body = _body(client, api_params, operation_model)
    if body is None:
        return _any_convert(client, api_params, operation_model, endpoint_url, context, **more)
    context["is_straight"] = True
    return {"body": body, "headers": {}, "url": f"{endpoint_url}/", "context": context}


def _body(client: Any, parameters: Mapping[str, Any], operation_model: Any) -> bytes | None:
    if not _is_usual(client, operation_model):
        return None
    validator = getattr(client._serializer, "_param_validator", None)  # a client may have none
    if validator and validator.validate(parameters, operation_model.input_shape).has_errors():
        return None
    try:
        body = json.dumps(parameters).encode()
    except TypeError:
        return None
    return None if is_left_to_moto(body) else body


def _send(endpoint: Any, request: Any, operation_model: Any) -> Any:
    if "is_straight" not in request["context"]:
        return _any_send(endpoint, request, operation_model)
    tries = 1
    answer, failure = _tried(endpoint, request, operation_model)
    while (answer is None or answer[0].status_code != 200) and endpoint._needs_retry(
        tries, operation_model, request, answer, failure
    ):
        tries += 1
        answer, failure = _tried(endpoint, request, operation_model)
    if answer is None:
        assert failure is not None
        raise failure
    answer[1]["ResponseMetadata"]["RetryAttempts"] = tries - 1
    return answer


def _tried(
    endpoint: Any, request: Any, operation_model: Any
) -> tuple[tuple[Any, dict[str, Any]] | None, Exception | None]:
    """The answer, or the error instead of one, such as a broken connection."""
    try:
        return _sent(endpoint, request, operation_model), None
    except Exception as failure:  # noqa: BLE001 - raised after the last try, as by the SDK
        return None, failure


def _sent(endpoint: Any, request: Any, operation_model: Any) -> tuple[Any, dict[str, Any]]:
    target = target_of(operation_model.service_model.service_name, operation_model.name)
    prepared: Any = AWSPreparedRequest(
        "POST", request["url"], _Headers({"X-Amz-Target": target}), request["body"], False
    )
    reply: Any = botocore_stubber.process_request(prepared)
    status, headers, text = reply
    content = text.encode()
    http = SimpleNamespace(status_code=status, headers=_Headers(headers), content=content)
    if status == 200 and _BINARY not in text:
        return http, _read(text, headers, operation_model.output_shape)
    response = {"status_code": status, "headers": http.headers, "body": content}
    parser = endpoint._response_parser_factory.create_parser(
        operation_model.service_model.resolved_protocol
    )
    parsed = parser.parse(response, operation_model.output_shape)
    if status != 200:
        endpoint._add_modeled_error_fields(response, parsed, operation_model, parser)
    return http, parsed


def _read(text: str, headers: Mapping[str, str], shape: Any) -> dict[str, Any]:
    """The SDK's form of an answer: without null members and those that its model does not know."""
    members = shape.members if shape else {}
    read = {
        name: value
        for name, value in json.loads(text).items()
        if value is not None and name in members
    }
    lowered = {name.lower(): value for name, value in headers.items()}
    metadata = {"HTTPStatusCode": 200, "HTTPHeaders": lowered}
    if "x-amzn-requestid" in lowered:
        metadata["RequestId"] = lowered["x-amzn-requestid"]
    return {**read, "ResponseMetadata": metadata}
