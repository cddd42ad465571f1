"""An answer, and how it travels back through Lambda and API Gateway."""

import json
from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

JSON = "application/json"

# What Lambda returns has at most 6 MB and carries the body as a JSON string, in which one byte
# may become six. Above this size it travels as base64, whose size depends on nothing else.
_TEXT_BYTES_MAX = 1_000_000


class Answer(Struct, frozen=True):
    status: int
    text: str
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    log_fields: Mapping[str, object] = field(default_factory=dict)  # ids, no more

    def event(self) -> dict[str, Any]:
        raw = self.text.encode()
        is_base64 = len(raw) > _TEXT_BYTES_MAX
        return {
            "statusCode": self.status,
            "headers": {"content-type": self.content_type, **self.headers},
            "body": b64encode(raw).decode() if is_base64 else self.text,
            "isBase64Encoded": is_base64,
        }


def compact(members: Any) -> str:
    """ASCII only, so that no lone surrogate of a caller's text can stop the answer."""
    return json.dumps(members, separators=(",", ":"))


def json_answer(members: Mapping[str, object]) -> Answer:
    return Answer(200, compact(members))
