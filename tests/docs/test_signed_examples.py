"""Each signed call on README and docs/api.md is made, and its signature is verified according to
the specification: with `duewheel`, and with the installed awscurl and curl."""

import os
import shutil
import subprocess
import sys
from email.message import Message
from itertools import product
from pathlib import Path

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.support.bounds import quick_first
from tests.support.cases import each_case
from tests.support.page_blocks import ROOT, indented, text_of
from tests.support.sigv4_verifier import KEY_ID, REGION, SECRET, SERVICE, verifier, why_refused

BY_A_SIGNATURE = ("curl --aws-sigv4", "awscurl ", 'duewheel --url "$API_URL"')
TOKEN_HEADER = '-H "x-amz-security-token: $AWS_SESSION_TOKEN" '
SIGNED = sorted(
    {
        line
        for page in ("README.md", "docs/api.md", "docs/cli.md")
        for block in indented(text_of(page))
        for line in block.replace("\\\n", "").splitlines()
        if line.startswith(BY_A_SIGNATURE)
    }
)
PROGRAMS = {line.partition(" ")[0] for line in SIGNED}


def environment(folder: Path, url: str, token: str | None) -> dict[str, str]:
    """The environment in which `duewheel` is the client of this checkout."""
    command = folder / "duewheel"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m duewheel.cli "$@"\n')
    command.chmod(0o755)
    credentials = {"AWS_ACCESS_KEY_ID": KEY_ID, "AWS_SECRET_ACCESS_KEY": SECRET}
    credentials |= {"AWS_SESSION_TOKEN": token} if token else {}
    config = folder / "config"
    lines = [f"{name.lower()} = {text}" for name, text in credentials.items()]
    config.write_text("\n".join(["[profile here]", f"region = {REGION}", *lines, ""]))
    return {
        **credentials,
        "AWS_CONFIG_FILE": str(config),
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_REGION": REGION,
        "API_URL": url,
        "DUEWHEEL_PROFILE": "here",  # required for an address that is not API Gateway's
        "HOME": str(folder),
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "client/src"),
    }


def test_a_signed_call_is_shown_by_each_program() -> None:
    assert sorted(PROGRAMS) == ["awscurl", "curl", "duewheel"]
    assert any(TOKEN_HEADER in line for line in SIGNED)


TARGETS = ["/v1/wheel", "/v1/tasks/a:b", "/v1/tasks/a%3Ab%20c", "/v1/tasks/%C3%BC~"]
QUERIES = ["", "?b=1&a=2", "?a=2%3A3&a=%2B&c=", "?a=x%20y&A=%2A&a-=~"]


@each_case(("method", "body"), [("GET", b""), ("PUT", "{ü}".encode())])
def test_only_a_signature_of_the_sdk_is_verified(method: str, body: bytes) -> None:
    """Checks the verifier against another implementation."""
    for path, query in product(TARGETS, QUERIES):
        request = AWSRequest(method, f"https://api.example{path}{query}", data=body)
        SigV4Auth(Credentials(KEY_ID, SECRET, "token"), SERVICE, REGION).add_auth(request)
        headers = Message()
        headers["Host"] = "api.example"
        for name, text in request.headers.items():
            headers[name] = text
        assert why_refused(method, path + query, headers, body, "token") is None
        raw = (path + query).replace("%2A", "*").replace("2%3A3", "2:3")  # the same query
        assert why_refused(method, raw, headers, body, "token") is None
        assert why_refused("POST", path + query, headers, body, "token")
        assert why_refused(method, f"{path}x{query}", headers, body, "token")
        assert why_refused(method, f"{path}{query or '?'}&z=1", headers, body, "token")
        assert why_refused(method, path + query, headers, body + b"x", "token")
        assert why_refused(method, path + query, headers, body, None)
        headers["x-amz-more"] = "1"
        assert why_refused(method, path + query, headers, body, "token")


@pytest.mark.parametrize("token", ["to/ken+==", None], ids=["a session", "a user's key"])
@pytest.mark.parametrize("line", quick_first(SIGNED, pytest.mark.exhaustive, 2))
def test_the_signature_of_an_example_is_verified(
    line: str, token: str | None, tmp_path: Path
) -> None:
    """The own key of an IAM user has no token, so its header is left out, as the page describes."""
    program = line.partition(" ")[0]
    if program != "duewheel" and shutil.which(program) is None:
        pytest.skip(f"there is no {program} here")
    made = line if token else line.replace(TOKEN_HEADER, "")
    with verifier(token) as noted:
        subprocess.run(
            ["bash", "-c", made],
            env=environment(tmp_path, noted.url, token),
            capture_output=True,
            timeout=60,
        )
    assert [why for _, why in noted.verdicts] == [None], (made, noted.verdicts)


@pytest.mark.parametrize(
    "target",
    [
        "/v1/tasks?status=pending&biz_type=orders",
        "/v1/tasks?biz_type=orders&due_from=2030-01-31T08:00:00Z",
        "/v1/businesses/orders/tasks/order-17:close",
        "/v1/businesses/orders/tasks/order-17%3Aclose",
    ],
)
def test_curl_7_88_behaves_as_the_page_describes(target: str, tmp_path: Path) -> None:
    curl = shutil.which("curl")
    if curl is None or "curl 7.88" not in subprocess.check_output([curl, "--version"], text=True):
        pytest.skip("there is no curl 7.88 here")
    (shown,) = (line for line in SIGNED if line.startswith("curl ") and "/v1/wheel" in line)
    with verifier("token") as noted:
        subprocess.run(
            ["bash", "-c", shown.replace("/v1/wheel", target)],
            env=environment(tmp_path, noted.url, "token"),
            capture_output=True,
            timeout=60,
        )
    ((_, why),) = noted.verdicts
    assert why is not None
