"""Signature Version 4, written from its description: the signature that AWS computes of a
request."""

import hashlib
import hmac
from urllib.parse import quote, unquote

import httpx
import pytest

SECRET = "not-a-real-secret"


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_SESSION_TOKEN", "token")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def signed_by_hand(request: httpx.Request) -> str:
    """The `authorization` that the request should have."""
    scheme, _, rest = request.headers["authorization"].partition(" ")
    given = dict(part.split("=", 1) for part in rest.split(", "))
    _, day, region, service, _ = given["Credential"].split("/")
    names = given["SignedHeaders"].split(";")
    path, _, query = request.url.raw_path.decode().partition("?")
    canonical = "\n".join(
        [
            request.method,
            quote(path, safe="/~"),
            "&".join(sorted(_canonical(pair) for pair in query.split("&"))),
            *[f"{name}:{request.headers[name].strip()}" for name in names],
            "",
            given["SignedHeaders"],
            hashlib.sha256(request.content).hexdigest(),
        ]
    )
    scope = f"{day}/{region}/{service}/aws4_request"
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    to_sign = f"{scheme}\n{request.headers['x-amz-date']}\n{scope}\n{digest}"
    key = f"AWS4{SECRET}".encode()
    for text in (day, region, service, "aws4_request"):
        key = hmac.digest(key, text.encode(), "sha256")
    signature = hmac.new(key, to_sign.encode(), "sha256").hexdigest()
    return (
        f"{scheme} Credential={given['Credential']}, "
        f"SignedHeaders={given['SignedHeaders']}, Signature={signature}"
    )


def _canonical(pair: str) -> str:
    """All characters except letters, digits and `-_.~` are escaped; a plus is no blank."""
    name, equals, text = pair.partition("=")
    return quote(unquote(name), safe="") + equals + quote(unquote(text), safe="")
