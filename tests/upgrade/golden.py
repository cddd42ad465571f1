"""`make golden`: keep what this release writes, to compare later releases with it.

Run by `make release` only: what a release wrote is not changed afterwards.
"""

import json
import os
import sys
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any
from unittest.mock import patch

import boto3

from local.aws.emulator import Emulator
from local.aws.resources import create_resources
from local.aws.template import load_template
from tests.support.clock import ManualClock
from tests.support.world import World
from tests.upgrade.story import tell

PREVIOUS = Path(__file__).parent / "previous"
TEMPLATE = Path(__file__).parents[2] / "template.yaml"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "none", "AWS_SECRET_ACCESS_KEY": "none"}
_SENDS = ("SendMessage", "SendMessageBatch")


def written(world: World) -> dict[str, Any]:
    """All items of the tables, every message that was ever sent, and the instant."""
    scan = world.unrecorded.get_paginator("scan").paginate
    registry = scan(TableName=world.settings.registry_table)
    secrets = scan(TableName=world.settings.secrets_table)
    bodies = [
        entry["MessageBody"]
        for call in world.recorder.calls
        if call.operation in _SENDS
        for entry in call.request.get("Entries", [call.request])
    ]
    return {
        "wheel": sorted(map(_as_json, world.items()), key=_place),
        "registry": sorted(
            (_as_json(item) for page in registry for item in page["Items"]), key=_place
        ),
        "secrets": sorted(
            (_as_json(item) for page in secrets for item in page["Items"]),
            key=lambda item: item["id"]["S"],
        ),
        "messages": list(dict.fromkeys(bodies)),
        "moment": {"now_ms": world.clock.now_ms()},
    }


def kept(name: str) -> Any:
    """Nothing of a table that the previous release does not have."""
    path = PREVIOUS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else []


def item_from(item: dict[str, Any]) -> dict[str, Any]:
    return {
        name: {"B": b64decode(value["B"])} if "B" in value else value
        for name, value in item.items()
    }


def _as_json(item: dict[str, Any]) -> dict[str, Any]:
    return {
        name: {"B": b64encode(value["B"]).decode()} if "B" in value else value
        for name, value in item.items()
    }


def _place(item: dict[str, Any]) -> str:
    return json.dumps([item.get("place") or item["kind"], item.get("slot") or item["record"]])


def main() -> int:
    clock = ManualClock()
    with patch.dict(os.environ, CREDENTIALS), Emulator(clock) as emulator:
        template = load_template(TEMPLATE, {"AuthMode": "keys"})
        resources = create_resources(template, boto3.client("dynamodb"), boto3.client("sqs"))
        world = World(emulator, resources, clock)
        tell(world)
        for name, value in written(world).items():
            rows = value if isinstance(value, list) else [value]
            lines = ",\n".join(json.dumps(row, sort_keys=True) for row in rows)
            text = f"[\n{lines}\n]\n" if isinstance(value, list) else f"{lines}\n"
            (PREVIOUS / f"{name}.json").write_text(text)
        world.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
