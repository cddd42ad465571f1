"""The Lambda authorizer of the HTTP API: authenticate an API key and return its grants.

API Gateway caches the answer for a minute, by the value of the header alone, for every route. So
the answer follows from that value and from nothing else of the request. The value is never logged.
"""

from typing import Any

from duewheel.log import logs_run
from duewheel.rules.access.grants import grants_text
from duewheel.wiring import access as wiring
from duewheel.wiring.process import answers_check, writes_metrics


@logs_run
@answers_check(wiring)
@writes_metrics
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    key = wiring.authorize()(event["identitySource"][0])
    if key is None:
        return {"isAuthorized": False}
    key_context = {
        "key_id": key.key_id,
        "version": str(key.version),
        "grants": grants_text(key.grants),
        "expires_ms": "" if key.expires_ms is None else str(key.expires_ms),
    }
    return {"isAuthorized": True, "context": key_context}
