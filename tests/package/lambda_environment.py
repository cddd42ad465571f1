"""Boots a built function as Lambda does: the real runtime client behind the real emulator.

Invariant: the interpreter runs without its site-packages, so what a function can import
is its own folder, its layers and the runtime client, at /var/task, /opt and /var/runtime
where mounts are possible (as root, or in a user namespace), else at the same relative
places through the environment.
"""

import json
import os
import platform
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.package.built_package import BuiltFunction

BOOT_SECONDS_MAX = 30

# The folders are gathered before /var and /opt are covered, since they may lie beneath these.
_MOUNT_AND_RUN = """
set -e
mount -t tmpfs tmpfs "$ROOM"
mkdir "$ROOM/task" "$ROOM/runtime" "$ROOM/lang" "$ROOM/layers"
cp "$EMULATOR" "$ROOM/emulator"
mount --bind "$TASK" "$ROOM/task"
mount -o remount,bind,ro "$ROOM/task"
mount --bind "$LAYERS" "$ROOM/layers"
mount -o remount,bind,ro "$ROOM/layers"
mount --bind "$RUNTIME" "$ROOM/runtime"
mount --rbind "$LANG_PREFIX" "$ROOM/lang"
mount --rbind "$ROOM" /var
mount --bind /var/layers /opt
cd /var/task
unset ROOM EMULATOR TASK LAYERS RUNTIME LANG_PREFIX PWD OLDPWD
exec /var/emulator "$@"
"""


@dataclass(frozen=True, slots=True)
class Platform:
    """The parts of the environment that AWS adds to a function's code."""

    python_prefix: Path
    runtime_client: Path
    emulator: Path
    namespace: tuple[str, ...]  # the command that gives private mounts; empty where none does

    @property
    def mounts(self) -> bool:
        return bool(self.namespace)


def find_platform(python_bin: Path, runtime_client: Path) -> Platform:
    architecture = {"x86_64": "x86_64", "aarch64": "arm64"}[platform.machine()]
    [emulator] = (
        Path(".venv-sam")
        .resolve()
        .glob(f"lib/python3*/site-packages/samcli/local/rapid/aws-lambda-rie-{architecture}")
    )
    ways = (("unshare", "--mount"), ("unshare", "--map-root-user", "--mount"))
    possible = [way for way in ways if _succeeds((*way, "mount", "-t", "tmpfs", "tmpfs", "/mnt"))]
    return Platform(
        python_prefix=python_bin.resolve().parent,
        runtime_client=runtime_client.resolve(),
        emulator=emulator,
        namespace=possible[0] if possible else (),
    )


def _succeeds(command: tuple[str, ...]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, timeout=10, check=False).returncode == 0
    except FileNotFoundError:
        return False


class LambdaEnvironment:
    """One execution environment. `scratch` is its folder, in which its output is stored."""

    def __init__(
        self,
        function: BuiltFunction,
        platform: Platform,
        scratch: Path,
        environment: Mapping[str, str],
        timeout_seconds: int | None = None,
    ) -> None:
        self.function = function
        self.log = scratch / "log"
        self._timeout_seconds = timeout_seconds or function.timeout_seconds
        self._port, runtime_api_port = _free_ports(2)
        layers = _joined_layers(function, scratch / "layers")
        arguments = [
            "--runtime-interface-emulator-address", f"127.0.0.1:{self._port}",
            "--runtime-api-address", f"127.0.0.1:{runtime_api_port}",
        ]  # fmt: skip
        if platform.mounts:
            command, folder, paths = _in_a_namespace(function, platform, scratch, layers)
        else:
            command, folder, paths = _in_place(function, platform, layers)
        client = [f"{paths['lang']}/bin/python3.13", "-S", "-m", "awslambdaric", function.handler]
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [*command, *arguments, *client],
                cwd=folder,
                env={**paths["variables"], **self._lambda_variables(), **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _lambda_variables(self) -> dict[str, str]:
        return {
            **self.function.environment,
            "AWS_LAMBDA_FUNCTION_NAME": self.function.name,
            "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(self.function.memory_mb),
            "AWS_LAMBDA_FUNCTION_TIMEOUT": str(self._timeout_seconds),
            "AWS_LAMBDA_LOG_FORMAT": "JSON",
            "AWS_LAMBDA_LOG_LEVEL": "INFO",
            "LANG": "en_US.UTF-8",
            "TZ": ":UTC",
        }

    def invoke(self, event: Mapping[str, Any]) -> Any:
        """The function's answer; an AssertionError with its log if it failed."""
        self._await_port()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._port}/2015-03-31/functions/function/invocations",
            json.dumps(event).encode(),
        )
        with urllib.request.urlopen(request, timeout=self._timeout_seconds + 10) as reply:
            answer = json.loads(reply.read() or b"null")
        failed = isinstance(answer, dict) and "errorType" in answer
        assert not failed, f"{self.function.name} failed: {answer}\n{self.printed()}"
        return answer

    def printed(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def memory_peak_mb(self) -> float:
        """The peak memory of the function's process so far."""
        peaks = [_peak_kb(child) for child in _children(self._process.pid)]
        return max(peaks) / 1024

    def stop(self) -> None:
        for process in (*_children(self._process.pid), self._process.pid):
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue  # it has ended with another process
        self._process.wait(timeout=10)

    def _await_port(self) -> None:
        until = time.monotonic() + BOOT_SECONDS_MAX
        while time.monotonic() < until and self._process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self._port)) == 0:
                    return
            time.sleep(0.05)
        raise AssertionError(f"{self.function.name} did not boot:\n{self.printed()}")


def _in_a_namespace(
    function: BuiltFunction, platform: Platform, scratch: Path, layers: Path
) -> tuple[list[str], Path, dict[str, Any]]:
    room = scratch / "room"
    room.mkdir()
    variables = {
        "ROOM": str(room),
        "EMULATOR": str(platform.emulator),
        "TASK": str(function.folder),
        "LAYERS": str(layers),
        "RUNTIME": str(platform.runtime_client),
        "LANG_PREFIX": str(platform.python_prefix),
        "PATH": "/var/lang/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin:/opt/bin",
        "LD_LIBRARY_PATH": "/var/lang/lib:/var/runtime:/var/task:/opt/lib",
        "LAMBDA_TASK_ROOT": "/var/task",
        "LAMBDA_RUNTIME_DIR": "/var/runtime",
        "PYTHONPATH": "/opt/python/lib/python3.13/site-packages:/opt/python:/var/runtime",
    }
    command = [*platform.namespace, "sh", "-c", _MOUNT_AND_RUN, "sh"]
    return command, scratch, {"lang": "/var/lang", "variables": variables}


def _in_place(
    function: BuiltFunction, platform: Platform, layers: Path
) -> tuple[list[str], Path, dict[str, Any]]:
    variables = {
        "PATH": f"{platform.python_prefix}/bin:/usr/local/bin:/usr/bin:/bin",
        "LAMBDA_TASK_ROOT": str(function.folder),
        "LAMBDA_RUNTIME_DIR": str(platform.runtime_client),
        "PYTHONPATH": f"{layers}/python:{platform.runtime_client}",
    }
    paths = {"lang": str(platform.python_prefix), "variables": variables}
    return [str(platform.emulator)], function.folder, paths


def _joined_layers(function: BuiltFunction, joined: Path) -> Path:
    """All layers in one tree of hard links or copies, as Lambda unpacks them over each other."""
    for layer in function.layers:
        for source in layer.rglob("*"):
            target = joined / source.relative_to(layer)
            if source.is_dir():
                target.mkdir(parents=True, exist_ok=True)
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            assert not target.exists(), f"{target} is in two layers"
            _link_or_copy(source, target)
    return joined


def _link_or_copy(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        target.write_bytes(source.read_bytes())


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def _children(process: int) -> list[int]:
    found = []
    for listed in Path(f"/proc/{process}/task").glob("*/children"):
        for child in map(int, listed.read_text().split()):
            found += [child, *_children(child)]
    return found


def _peak_kb(process: int) -> int:
    status = Path(f"/proc/{process}/status").read_text()
    [peak] = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(peak.split()[1])
