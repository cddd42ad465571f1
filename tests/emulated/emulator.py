"""ministack as a process of its own, over TLS on loopback, with permission checks for every caller.

Invariant: it ends with `stop`, together with all its functions. The queues of the stack refuse
plain HTTP and their policies are enforced, so it serves TLS with a self-signed certificate.
"""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import boto3
from botocore.credentials import Credentials

from local.aws.template import ACCOUNT_ID, REGION

START_SECONDS_MAX = 120
# ministack treats this pair as the root's.
_ROOT = Credentials("owner-of-the-account", "testing")


class Emulator:
    """`folder` is its own: for its log, its certificate and its functions' code."""

    def __init__(self, python: Path, folder: Path) -> None:
        self.port = _free_port()
        self.endpoint = f"https://127.0.0.1:{self.port}"
        self.certificate = folder / "ministack-tls" / "server.crt"
        self._clients: dict[str, Any] = {}
        self._log = folder / "log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [python, Path(__file__).with_name("metric_math.py")],
                env={
                    "PATH": os.environ["PATH"],
                    "TMPDIR": str(folder),
                    "BIND_HOST": "127.0.0.1",
                    "GATEWAY_PORT": str(self.port),
                    "USE_SSL": "1",
                    "AUTH": "true",
                    "MINISTACK_ACCOUNT_ID": ACCOUNT_ID,
                    "MINISTACK_REGION": REGION,
                    "AWS_ACCESS_KEY_ID": _ROOT.access_key,
                    "AWS_SECRET_ACCESS_KEY": _ROOT.secret_key,
                    "IOT_MTLS_ENABLED": "0",  # it would listen on a shared port
                },
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._await_start()

    def stop(self) -> None:
        """Ends the process group, since functions are processes that do not end by themselves."""
        for how in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, how)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=5)

    def printed(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    def client(self, service: str) -> Any:
        """The same client each time: to make one takes a second on a busy machine."""
        if service not in self._clients:
            self._clients[service] = self.client_of(_ROOT, service)
        return self._clients[service]

    def client_of(self, caller: Credentials, service: str) -> Any:
        session = boto3.Session(caller.access_key, caller.secret_key, region_name=REGION)
        return session.client(service, endpoint_url=self.endpoint, verify=str(self.certificate))

    def environment(self) -> Mapping[str, str]:
        """The environment of a tool that is to use the emulator as AWS."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        return kept | {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_CA_BUNDLE": str(self.certificate),
            "AWS_ACCESS_KEY_ID": _ROOT.access_key,
            "AWS_SECRET_ACCESS_KEY": _ROOT.secret_key,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "SAM_CLI_TELEMETRY": "0",
        }

    def _await_start(self) -> None:
        deadline = time.monotonic() + START_SECONDS_MAX
        while True:
            assert self._process.poll() is None, f"the emulator ended:\n{self.printed()}"
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            except OSError:
                assert time.monotonic() < deadline, f"it does not answer:\n{self.printed()}"
                time.sleep(0.1)
            else:
                return


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port
