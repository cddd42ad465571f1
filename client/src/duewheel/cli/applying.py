"""`duewheel timer apply`: make the timers of a deployment those of the files.

The whole plan is made first, by dry runs. If the service refuses one definition, nothing is
changed.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import click

from duewheel._sync.client import Duewheel
from duewheel.cli.definitions import FIELDS, Definition, Definitions, read_definitions
from duewheel.cli.failures import WOULD_CHANGE, Failed, exit_code_of, problem_line
from duewheel.cli.framework import Command, client, output
from duewheel.cli.output import Output
from duewheel.cli.shown import as_json, as_text, members
from duewheel.errors import Problem, UnknownTimer
from duewheel.values import Timer

Action = Literal["create", "change", "none", "prune"]
SIGNS: Mapping[Action, str] = {"create": "+", "change": "~", "none": "=", "prune": "-"}
SHOWN = (*sorted(FIELDS), "managed_by")


@dataclass(frozen=True, kw_only=True)
class Step:
    """What one timer needs. `fields`: its differences, with the old and the new value."""

    action: Action
    biz_type: str
    name: str
    fields: Sequence[Mapping[str, Any]] = ()
    definition: Definition | None = field(default=None, repr=False)
    timer: Timer | None = field(default=None, repr=False)


@click.command(cls=Command)
@click.argument(
    "files",
    metavar="FILE...",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
)
@click.option("--prune", is_flag=True, help="Delete the timers of the sets that no file has.")
@click.option("--dry-run", is_flag=True, help="Only show the plan; exit code 5 if it has changes.")
@click.option("--yes", is_flag=True, help="Prune without asking.")
def apply(files: tuple[Path, ...], *, prune: bool, dry_run: bool, yes: bool) -> None:
    """Make and change timers, so that they are as the files declare.

    A file has a business, the name of its set, and timers. With --prune give all files of a set at
    once: its timers that no file has are deleted.
    """
    definitions = read_definitions(files)
    api = client()
    steps = [*_planned(api, definitions.timers)]
    if prune:
        steps += _pruned(api, definitions)
    for step in steps:
        _show(output(), step)
    needed = [step for step in steps if step.action != "none"]
    output().note(_summary(steps))
    if dry_run:
        if needed:
            raise click.exceptions.Exit(WOULD_CHANGE)
        return
    gone = sum(step.action == "prune" for step in needed)
    if gone and not yes:
        click.confirm(f"Delete {gone} timers?", abort=True, err=True)
    for step in needed:
        _carry_out(api, step)


def _planned(api: Duewheel, definitions: Sequence[Definition]) -> Iterator[Step]:
    """Raises `Failed` when the service refuses one of them, after it was asked about all."""
    refused: list[Problem] = []
    for one in definitions:
        try:
            before = _found(api, one)
            after = _put(api, one, dry_run=True)
        except Problem as problem:
            where = f" ({problem.field})" if problem.field else ""
            output().note(f"! {one.biz_type}/{one.name}: {problem_line(problem)}{where}")
            refused.append(problem)
            continue
        action: Action = "change"
        if before is None:
            action = "create"
        elif before.version == after.version:
            action = "none"
        fields = _differences(before, after) if before else ()
        yield Step(
            action=action, biz_type=one.biz_type, name=one.name, fields=fields, definition=one
        )
    if refused:
        raise Failed(
            f"{len(refused)} of {len(definitions)} timers are refused. Nothing is changed.",
            exit_code_of(refused[0]),
        )


def _pruned(api: Duewheel, definitions: Definitions) -> Iterator[Step]:
    kept = {(one.biz_type, one.name) for one in definitions.timers}
    for biz_type, managed_by in definitions.sets:
        for timer in api.timers.list(biz_type):
            if timer.managed_by == managed_by and (biz_type, timer.name) not in kept:
                yield Step(action="prune", biz_type=biz_type, name=timer.name, timer=timer)


def _carry_out(api: Duewheel, step: Step) -> None:
    if step.definition is not None:
        _put(api, step.definition)
    elif step.timer is not None:  # unless it was changed since: it may be of no set by now
        with suppress(UnknownTimer):  # by a repeat after a lost answer, or by another
            api.timers.delete(step.timer.timer_id, if_match=step.timer.version)


def _found(api: Duewheel, one: Definition) -> Timer | None:
    try:
        return api.timers.get_by_name(one.biz_type, one.name)
    except UnknownTimer:
        return None


def _put(api: Duewheel, one: Definition, *, dry_run: bool = False) -> Timer:
    fields: Any = {**one.fields, "managed_by": one.managed_by}
    return api.timers.put(one.biz_type, one.name, dry_run=dry_run, **fields)


def _differences(before: Timer, after: Timer) -> Sequence[Mapping[str, Any]]:
    old, new = members(before), members(after)
    return tuple(
        {"field": name, "before": old[name], "after": new[name]}
        for name in SHOWN
        if old[name] != new[name]
    )


def _show(to: Output, step: Step) -> None:
    if to.is_json:
        names = ("action", "biz_type", "name", "fields")
        click.echo(as_json({name: getattr(step, name) for name in names}))
    elif step.action != "none":
        click.echo(as_text(f"{SIGNS[step.action]} {step.biz_type}/{step.name}"))
        for one in step.fields:
            was, becomes = as_text(one["before"]), as_text(one["after"])
            click.echo(f"    {one['field']}: {was} -> {becomes}")


def _summary(steps: Sequence[Step]) -> str:
    counts = Counter(step.action for step in steps)
    return (
        f"{counts['create']} to create, {counts['change']} to change, {counts['prune']} to delete, "
        f"{counts['none']} unchanged"
    )
