"""Signature Version 4, written from its specification for the service `execute-api`: a server that
records for each request whether its signature is valid. It uses no code of an SDK."""

import hashlib
import hmac
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import quote, unquote

ALGORITHM, SERVICE = "AWS4-HMAC-SHA256", "execute-api"
REGION, KEY_ID, SECRET = "eu-central-1", "AKIDEXAMPLE", "not-a-real-secret"
_AUTHORIZATION = re.compile(
    rf"{ALGORITHM} Credential={KEY_ID}/(?P<day>\d{{8}})/{REGION}/{SERVICE}/aws4_request, ?"
    r"SignedHeaders=(?P<names>[a-z0-9;-]+), ?Signature=(?P<signature>[0-9a-f]{64})"
)


def why_refused(
    method: str, target: str, headers: Message, body: bytes, token: str | None
) -> str | None:
    """The reason of a refusal, or None if the signature is valid. `token` is the session's, which
    has to be signed as well."""
    found = _AUTHORIZATION.fullmatch(headers.get("authorization", ""))
    if found is None:
        return "no authorization of this key, Region and service"
    names = found["names"].split(";")
    amz = {name.lower() for name in headers if name.lower().startswith("x-amz-")}
    if names != sorted(set(names)) or not {"host", *amz} <= set(names):
        return f"signed are {names}"
    if absent := [name for name in names if name not in headers]:
        return f"signed, and not sent: {absent}"
    if headers.get("x-amz-security-token") != token:
        return "not the session's token"
    path, _, query = target.partition("?")
    lines = [method, quote(path, safe="/-_.~"), _canonical_query(query)]
    lines += [f"{name}:{' '.join(','.join(headers.get_all(name, [])).split())}" for name in names]
    lines += ["", found["names"], hashlib.sha256(body).hexdigest()]
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    date, scope = headers.get("x-amz-date", ""), f"{found['day']}/{REGION}/{SERVICE}/aws4_request"
    signed = f"{ALGORITHM}\n{date}\n{scope}\n{digest}".encode()
    key = f"AWS4{SECRET}".encode()
    for text in scope.split("/"):
        key = hmac.digest(key, text.encode(), "sha256")
    is_right = hmac.digest(key, signed, "sha256").hex() == found["signature"]
    return None if is_right and date.startswith(found["day"]) else f"not the signature of {lines}"


def _canonical_query(query: str) -> str:
    """Sorted by name and value, each encoded once; a plus is no blank."""
    pairs = [pair.partition("=") for pair in query.split("&") if pair]
    encoded = [(_encoded(name), _encoded(text)) for name, _, text in pairs]
    return "&".join(f"{name}={text}" for name, text in sorted(encoded))


def _encoded(text: str) -> str:
    return quote(unquote(text), safe="-_.~")


@dataclass
class Verifier:
    url: str
    token: str | None
    verdicts: list[tuple[str, str | None]] = field(default_factory=list)


@contextmanager
def verifier(token: str | None) -> Iterator[Verifier]:
    """A server that answers 404, which callers do not retry."""
    noted = Verifier("", token)

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            why = why_refused(self.command, self.path, self.headers, body, noted.token)
            noted.verdicts.append((f"{self.command} {self.path}", why))
            self.send_response(404)
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = handle_any

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=[0.01])
    thread.start()
    noted.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield noted
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
