"""Generate `src/duewheel/_sync` from `_async`, by replacing the words of async code."""

import re
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parent / "src/duewheel"
WORDS = (
    (r"async def", "def"),
    (r"async (with|for)", r"\1"),
    (r"await ", ""),
    (r"\bAsyncClient\b", "Client"),
    (r"\bAsyncBaseTransport\b", "BaseTransport"),
    (r"\bAsyncIterator\b", "Iterator"),
    (r"\basynccontextmanager\b", "contextmanager"),
    (r"\bAsync(?=[A-Z])", ""),
    (r"\b_async\b", "_sync"),
    (r"__aenter__", "__enter__"),
    (r"__aexit__", "__exit__"),
    (r"\baclose\b", "close"),
    (r"import asyncio\n", ""),
    (r"asyncio\.sleep", "time.sleep"),
)
HEAD = "# Made of _async/{name} by make_sync.py; change that.\n"
INIT = '"""The calls without await. Made of `_async` by `client/make_sync.py`."""\n'


def twin(path: Path) -> str:
    if path.name == "__init__.py":
        return INIT
    text = path.read_text()
    for async_word, sync_word in WORDS:
        text = re.sub(async_word, sync_word, text)
    return _formatted(HEAD.format(name=path.name) + text)


def stale() -> list[str]:
    """The files of `_sync` that differ from the generated text, or have no source in `_async`."""
    sources = {path.name: path for path in (PACKAGE / "_async").glob("*.py")}
    made = {path.name: path for path in (PACKAGE / "_sync").glob("*.py")}
    wrong = [
        name
        for name, path in sources.items()
        if name not in made or made[name].read_text() != twin(path)
    ]
    return sorted([*wrong, *(made.keys() - sources.keys())])


def write() -> None:
    (PACKAGE / "_sync").mkdir(exist_ok=True)
    for path in (PACKAGE / "_async").glob("*.py"):
        (PACKAGE / "_sync" / path.name).write_text(twin(path))


def _formatted(text: str) -> str:
    for arguments in (["check", "--select", "I", "--fix", "--exit-zero"], ["format"]):
        ruff = [sys.executable, "-m", "ruff", *arguments, "--quiet"]
        name = str(PACKAGE / "_sync" / "made.py")  # ruff finds its settings by this path
        ran = subprocess.run(
            [*ruff, "--stdin-filename", name, "-"], input=text, text=True, capture_output=True
        )
        if ran.returncode:
            raise SystemExit(ran.stderr)
        text = ran.stdout
    return text


def main() -> int:
    write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
