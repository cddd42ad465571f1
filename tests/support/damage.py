"""Direct edits of items, as the service never makes them."""

from typing import Any

from duewheel.rules.tasks.task import Task
from duewheel.rules.wheel.addresses import Address
from duewheel.stores.tasks import codec
from tests.support.world import World


def edit(world: World, key: dict[str, Any], /, **attributes: Any) -> None:
    """Set these attributes; None removes one."""
    sets = [f"#{name} = :{name}" for name, value in attributes.items() if value is not None]
    removes = [f"#{name}" for name, value in attributes.items() if value is None]
    clauses = [("SET", sets), ("REMOVE", removes)]
    values = {f":{name}": value for name, value in attributes.items() if value is not None}
    world.unrecorded.update_item(
        TableName=world.settings.wheel_table,
        Key={"slot": key["slot"], "place": key["place"]},
        UpdateExpression=" ".join(f"{verb} {', '.join(names)}" for verb, names in clauses if names),
        ExpressionAttributeNames={f"#{name}": name for name in attributes},
        **({"ExpressionAttributeValues": values} if values else {}),
    )


def delete(world: World, key: dict[str, Any]) -> None:
    kept = {"slot": key["slot"], "place": key["place"]}
    world.unrecorded.delete_item(TableName=world.settings.wheel_table, Key=kept)


def key_of(world: World, task: Task) -> dict[str, Any]:
    return codec.key(task.home, world.settings.buckets)


def entry_key(world: World, entry: Address) -> dict[str, Any]:
    return codec.key(entry, world.settings.buckets)


def move_pointer(world: World, name: str, second: int) -> None:
    world.pointers.skip_to(name, world.origin, second)
