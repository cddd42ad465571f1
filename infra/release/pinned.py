"""What the requirements files pin: each package with its version and the hashes of its files."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DEPLOYED = "layers/vendor/requirements.txt"
TOOLS = (
    "requirements/dev.txt",
    "requirements/check.txt",
    "requirements/sam.txt",
    "requirements/runtime.txt",
    "requirements/uv.txt",
    "requirements/second.txt",
    "requirements/browser.txt",
    "requirements/bench.txt",
)

_PINNED = re.compile(r"([a-z0-9][a-z0-9.-]*)==([^\s;]+)(?: ; ([^\\]+))?")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Pinned:
    """One version of one package. `sha256`: of each file that it may be installed from."""

    name: str
    version: str
    marker: str
    sha256: tuple[str, ...]

    @property
    def purl(self) -> str:
        return f"pkg:pypi/{self.name}@{self.version}"

    @property
    def is_for_windows_alone(self) -> bool:
        return "sys_platform == 'win32'" in self.marker


def pinned_in(path: str) -> list[Pinned]:
    """Raises ValueError for a line that does not pin."""
    text = (ROOT / path).read_text("utf-8").replace("\\\n", " ")
    return [_pinned(line) for line in text.splitlines() if line.strip()]


def deployed() -> list[Pinned]:
    return pinned_in(DEPLOYED)


def tools() -> list[Pinned]:
    """Each version once, and none of what is deployed as well."""
    found = {one.purl: one for path in TOOLS for one in pinned_in(path)}
    for one in deployed():
        found.pop(one.purl, None)
    return [found[purl] for purl in sorted(found)]


def _pinned(line: str) -> Pinned:
    match = _PINNED.match(line)
    hashes = tuple(_HASH.findall(line))
    if match is None or not hashes:
        raise ValueError(f"{line[:60]!r} does not pin a package to its hashes")
    return Pinned(match[1], match[2], (match[3] or "").strip(), hashes)
