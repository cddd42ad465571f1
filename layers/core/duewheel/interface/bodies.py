"""Bodies as API Gateway carries them: text, or base64 of bytes, in both directions."""

from base64 import b64decode, b64encode

from duewheel.rules.refusals import MalformedBody, TooLarge

# A Lambda's answer of at most 6 MB carries its body as a JSON string, in which one byte may
# become six. Above this size the body travels as base64, whose size depends on nothing else.
_TEXT_BYTES_MAX = 1_000_000


def received(body: str | None, is_base64: bool, bytes_max: int) -> str:
    """The text of a request's body."""
    if not body:
        raise MalformedBody("The body is missing; this call takes a JSON object.")
    try:
        raw = b64decode(body, validate=True) if is_base64 else body.encode()
        text = raw.decode()
    except ValueError as error:  # of base64 and of UTF-8 alike
        raise MalformedBody("The body is not UTF-8 text.") from error
    if len(raw) > bytes_max:
        raise TooLarge(f"The body has {len(raw)} bytes; this call takes at most {bytes_max}.")
    return text


def sent(body: str) -> tuple[str, bool]:
    """The body of an answer as it travels, and whether that is base64."""
    raw = body.encode()
    return (body, False) if len(raw) <= _TEXT_BYTES_MAX else (b64encode(raw).decode(), True)
