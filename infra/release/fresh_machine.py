"""`make fresh`: what README.md says under "Try it", in a clone, as on a machine that has nothing.

The clone and an empty HOME lie in one temporary folder; PATH has the few programs that are named
here; nothing of the environment is handed on but how pip and git reach their servers. Where Linux
allows it, everything outside that folder is made read-only first, so whoever writes there fails.
Only a stack of its own is believed: nobody may be at the port when it begins.

Run with the standard library alone.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import urlopen

ROOT = Path(__file__).resolve().parents[2]
README_URL = "http://127.0.0.1:8080"
# And python3, which is the one that runs this.
PROGRAMS = ["make", "git", "sh", "bash", "curl"]
# What any Unix has, as far as recipes, tests and the pages that they follow use it.
OF_UNIX = [
    *("cat", "cp", "cut", "env", "grep", "head", "ls", "mkdir", "mv", "rm", "sed", "sleep"),
    *("touch", "true", "uname"),
]
HANDED_ON = re.compile(r"PIP_.*|.*_CA_BUNDLE|SSL_CERT_.*|(https?|no|all)_proxy", re.IGNORECASE)
READ_ONLY = Path(__file__).with_name("read-only-but")
UP_WITHIN_SECONDS = 1200  # most of it is pip's


class Failed(Exception):
    """The machine did not come to what README.md says."""


def try_it(readme: str) -> tuple[list[str], str]:
    """The two commands, and what is to be run beside the first one."""
    (section,) = re.findall(r"^## Try it$(.*?)^## ", readme, re.MULTILINE | re.DOTALL)
    commands = re.findall(r"^    (make \w+)", section, re.MULTILINE)
    (beside,) = re.findall(r"^```sh\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    return commands, beside


def environment(folder: Path) -> dict[str, str]:
    home, programs = folder / "home", folder / "bin"
    for made in (home, programs, folder / "tmp"):
        made.mkdir()
    for name in (*PROGRAMS, *OF_UNIX):
        found = shutil.which(name)
        if found is None:
            raise Failed(f"this machine has no {name}")
        (programs / name).symlink_to(found)
    python = Path(sys.base_exec_prefix) / "bin" / f"python3.{sys.version_info.minor}"
    (programs / "python3").symlink_to(python)
    handed_on = {name: text for name, text in os.environ.items() if HANDED_ON.fullmatch(name)}
    return handed_on | {
        "HOME": str(home),
        "PATH": str(programs),
        "TMPDIR": str(folder / "tmp"),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "PIP_NO_CACHE_DIR": "1",
        "LANG": "C.UTF-8",
    }


def walls(folder: Path) -> list[str]:
    """The command before each command that leaves only the folder to write to."""
    unshare = shutil.which("unshare")
    if unshare is None:
        return without_walls("this machine has no unshare")
    command = [unshare, "--map-root-user", "--mount", str(READ_ONLY), str(folder)]
    tried = subprocess.run([*command, "true"], check=False, capture_output=True, text=True)
    return without_walls(tried.stderr.strip()) if tried.returncode else command


def without_walls(reason: str) -> list[str]:
    if os.environ.get("WALLS"):
        raise Failed(f"what lies outside cannot be made read-only: {reason}")
    return []


@contextmanager
def running(
    command: list[str], clone: Path, env: dict[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """In a group of its own, which gets what Ctrl-C would send."""
    started = subprocess.Popen(command, cwd=clone, env=env, start_new_session=True)
    try:
        yield started
    finally:
        if started.poll() is None:
            os.killpg(started.pid, signal.SIGINT)
        try:
            started.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(started.pid, signal.SIGKILL)
            raise Failed("make local did not end with Ctrl-C") from None


def address() -> str:
    port = os.environ.get("PORT", "")
    return f"http://127.0.0.1:{port}" if port else README_URL


def refuse_somebody_elses(url: str) -> None:
    """What answers there would be taken for what the clone has started."""
    where = urlsplit(url)
    with socket.socket() as tried:
        if tried.connect_ex((where.hostname, where.port)) == 0:
            raise Failed(f"somebody is at {url} already: end that, or take another PORT")


def wait_until_up(url: str, local: subprocess.Popen[bytes]) -> None:
    for _ in range(UP_WITHIN_SECONDS):
        if local.poll() is not None:
            raise Failed(f"make local ended with {local.returncode}")
        try:
            urlopen(f"{url}/v1/health", timeout=5).close()
        except (URLError, TimeoutError):
            time.sleep(1)  # noqa: TID251
        else:
            return
    raise Failed(f"make local did not answer at {url} within {UP_WITHIN_SECONDS} seconds")


def see_a_call(text: str) -> None:
    """The last of the answers, which come without a line break between them, is the inbox's."""
    _, beginning, rest = text.partition('{"requests":')
    if not beginning:
        raise Failed(f"the inbox did not answer: {text}")
    bodies = [request["body"] for request in json.loads(beginning + rest)["requests"]]
    if len(bodies) != 1 or json.loads(bodies[0]) != {"order": 17}:
        raise Failed(f"the inbox got {bodies}")


def local_stack(command: list[str], beside: str, clone: Path, env: dict[str, str]) -> None:
    port, url = os.environ.get("PORT", ""), address()
    with running(command, clone, env | ({"PORT": port} if port else {})) as local:
        wait_until_up(url, local)
        shell = ["bash", "-euo", "pipefail", "-c", beside.replace(README_URL, url)]
        done = subprocess.run(
            shell, cwd=clone, env=env, check=True, stdout=subprocess.PIPE, text=True
        )
        print(done.stdout, flush=True)
        if local.poll() is not None:
            raise Failed(f"make local ended with {local.returncode}: somebody else has answered")
        see_a_call(done.stdout)


def work(folder: Path, quick: bool) -> None:
    clone, env = folder / "duewheel", environment(folder)
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", ROOT, clone], check=True)
    commands, beside = try_it((clone / "README.md").read_text("utf-8"))
    if commands != ["make local", "make test"]:
        raise Failed(f"README.md says something else: {commands}")
    walled = walls(folder)
    said = "read-only" if walled else "NOT held: it can be written to as well"
    print(f"Python {sys.version.split()[0]}; everything outside of {folder} is {said}", flush=True)
    local_stack([*walled, "make", "local"], beside, clone, env)
    if not quick:
        subprocess.run([*walled, "make", "test"], cwd=clone, env=env, check=True)
    left = subprocess.run(
        ["git", "status", "--porcelain"], cwd=clone, check=True, stdout=subprocess.PIPE, text=True
    )
    if left.stdout:
        raise Failed(f"what is made is not all in .gitignore:\n{left.stdout}")


def main() -> int:
    quick = bool(os.environ.get("QUICK"))
    try:
        refuse_somebody_elses(address())
    except Failed as refusal:
        print(f"not begun: {refusal}", file=sys.stderr)
        return 1
    folder = Path(tempfile.mkdtemp(prefix="duewheel-fresh-"))
    try:
        work(folder, quick)
    except (Failed, subprocess.CalledProcessError) as failure:
        print(f"not as README.md says: {failure}; all of it is in {folder}", file=sys.stderr)
        return 1
    shutil.rmtree(folder)
    print("as README.md says" + (", tests left out" if quick else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
