"""GET from a deployment or from the local stack: with the API key of `DUEWHEEL_KEY`, or signed,
which a deployment requires."""

import json
import os
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.session import Session

from infra.operate.region import take_region

LOOPBACK = ("127.0.0.1", "localhost", "::1")  # the local stack asks for no signature
TIMEOUT_SECONDS = 35  # the HTTP API itself times out after 30


class Refused(Exception):
    """The service answered with a refusal."""


def get_json(url: str) -> Any:
    request = AWSRequest("GET", url)
    host = urlsplit(url).hostname or ""
    if key := os.environ.get("DUEWHEEL_KEY"):
        request.headers["Authorization"] = f"Bearer {key}"
    elif host not in LOOPBACK:
        session = Session()
        credentials = session.get_credentials()
        if credentials is None:
            raise Refused("There are no AWS credentials to sign the request with.")
        region = host.partition(".execute-api.")[2].partition(".")[0] or take_region()
        SigV4Auth(credentials, "execute-api", region).add_auth(request)
    prepared = urllib.request.Request(url, headers=dict(request.headers.items()))
    try:
        with urllib.request.urlopen(prepared, timeout=TIMEOUT_SECONDS) as reply:
            return json.loads(reply.read())
    except urllib.error.HTTPError as error:
        raise Refused(f"{error.code}: {error.read().decode(errors='replace')}") from error
