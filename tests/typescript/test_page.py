"""docs/other-languages.md: its client is generated, compiled and run, by `make typescript-test`."""

import json
from pathlib import Path

from tests.support.page_blocks import ROOT, text_of
from tests.support.read_along import follow

PAGE = "docs/other-languages.md"


def test_the_page_installs_the_pinned_versions() -> None:
    pins = json.loads((ROOT / "requirements/typescript/package.json").read_text("utf-8"))
    for name, version in (pins["dependencies"] | pins["devDependencies"]).items():
        assert f" {name}@{version}" in text_of(PAGE)


def test_the_generated_client_of_the_page_creates_reads_and_cancels_a_task(tmp_path: Path) -> None:
    (tmp_path / "node_modules").symlink_to(ROOT / ".venv-typescript/node_modules")
    differing = follow(text_of(PAGE), tmp_path)
    assert not differing, "\n".join(differing)
