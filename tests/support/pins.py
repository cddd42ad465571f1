"""The pinned packages of a requirements file."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DEPLOYED = ROOT / "layers/vendor/requirements.txt"
TOOLS = sorted((ROOT / "requirements").glob("*.txt"))

_PINNED = re.compile(
    r"(?P<name>[a-z0-9][a-z0-9.-]*)==(?P<version>[^\s;]+)(?: ; .+?)?(?: +--hash=sha256:\w{64})+"
)


def pinned(path: Path) -> dict[tuple[str, str], set[str]]:
    """The hashes by name and version. Fails for a line that does not pin a package to its
    hashes."""
    found = {}
    for line in path.read_text("utf-8").replace("\\\n", " ").splitlines():
        match = _PINNED.fullmatch(line)
        assert match, f"{path}: {line}"
        found[match["name"], match["version"]] = set(re.findall(r"sha256:(\w+)", line))
    return found
