"""The rows that a release has stored are read by this code.

`golden/VERSION/TABLE.jsonl` has rows of a release, one a line, as DynamoDB returns them. The first
are added before the tag 1.0.0, with the readers of their sorts; until then there are none.
"""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from duewheel.rules.refusals import UnreadableItem
from duewheel.stores.tasks import codec, keys
from tests.support.damage import edit, key_of
from tests.support.world import World

GOLDEN = Path(__file__).parent / "golden"
RELEASES = "v[1-9]*"

READERS: dict[str, Callable[[Any], object]] = {
    "task": codec.task_from,
    "re-entry": codec.reentry_from,
    "key": keys.home_named_by,
}


def sort_of(row: dict[str, Any]) -> str:
    if "kind" in row:
        return str(row["kind"]["S"]).partition("#")[0]
    if codec.is_reentry(row):
        return "re-entry"
    return "task" if "status" in row else "key" if "task" in row else row["slot"]["S"]


def unread(folder: Path) -> Iterator[str]:
    """The rows that are not read, and why."""
    for path in sorted(folder.glob("*/*.jsonl")):
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            row = json.loads(line)
            try:
                READERS[sort_of(row)](row)
            except (KeyError, UnreadableItem) as error:
                yield f"{path.relative_to(folder)}:{number}: {error!r}"


def test_every_row_of_a_release_is_read() -> None:
    assert list(unread(GOLDEN)) == []


def test_from_the_first_release_on_there_are_rows() -> None:
    tags = subprocess.run(
        ["git", "tag", "--list", RELEASES], cwd=GOLDEN.parent, capture_output=True, check=False
    ).stdout
    assert GOLDEN.is_dir() or not tags


def test_a_row_that_is_not_read_is_found(world: World, tmp_path: Path) -> None:
    task = world.created_by_key(world.new(60_000, key="order-17")).task
    stored = tmp_path / "1.0.0/wheel.jsonl"
    stored.parent.mkdir()
    stored.write_text("\n".join(map(json.dumps, world.items())))
    assert list(unread(tmp_path)) == []

    edit(world, key_of(world, task), due_ms=None)
    rows = [*world.items(), {"kind": {"S": "unheard-of#x"}, "record": {"S": "x"}}]
    stored.write_text("\n".join(map(json.dumps, rows)))
    found = "\n".join(unread(tmp_path))
    assert found.count("wheel.jsonl") == 2
    assert "due_ms" in found
    assert "unheard-of" in found
