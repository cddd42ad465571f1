"""Direct edits of items, as the service never makes them."""

from typing import Any

from duewheel.rules.tasks.task import Task
from duewheel.rules.wheel.addresses import Address
from duewheel.stores.tasks import codec
from tests.support.world import World


def edit(world: World, key: dict[str, Any], /, **attributes: Any) -> None:
    """Set these attributes; None removes one."""
    names = {f"#a{number}": name for number, name in enumerate(attributes)}
    given = {mark: attributes[name] for mark, name in names.items()}
    sets = [f"{mark} = :{mark[1:]}" for mark, value in given.items() if value is not None]
    removes = [mark for mark, value in given.items() if value is None]
    clauses = [("SET", sets), ("REMOVE", removes)]
    values = {f":{mark[1:]}": value for mark, value in given.items() if value is not None}
    world.unrecorded.update_item(
        **named_by(world, key),
        UpdateExpression=" ".join(f"{verb} {', '.join(them)}" for verb, them in clauses if them),
        ExpressionAttributeNames=names,
        **({"ExpressionAttributeValues": values} if values else {}),
    )


def delete(world: World, key: dict[str, Any]) -> None:
    world.unrecorded.delete_item(**named_by(world, key))


def named_by(world: World, key: dict[str, Any]) -> dict[str, Any]:
    """Table and key of an item; `key` may be the whole item."""
    is_of_wheel = "slot" in key
    names = ("slot", "place") if is_of_wheel else ("kind", "record")
    table = world.settings.wheel_table if is_of_wheel else world.settings.registry_table
    return {"TableName": table, "Key": {name: key[name] for name in names}}


def key_of(world: World, task: Task) -> dict[str, Any]:
    return codec.key(task.home, world.settings.buckets)


def entry_key(world: World, entry: Address) -> dict[str, Any]:
    return codec.key(entry, world.settings.buckets)


def move_pointer(world: World, name: str, second: int) -> None:
    world.pointers.skip_to(name, world.origin, second)
