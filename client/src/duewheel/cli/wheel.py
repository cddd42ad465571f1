"""`duewheel wheel` and `duewheel audit`: the state of the service itself."""

from datetime import datetime

import click

from duewheel.cli import arguments
from duewheel.cli.framework import Command, client, output
from duewheel.cli.shown import here
from duewheel.values import OpenPlaces, Wheel


@click.command(cls=Command)
def wheel() -> None:
    """Show the pointers, the places the sweep has left open, and the next hour's forecast."""
    found = client().wheel()
    if output().is_json:
        output().value(found)
        return
    for sentence in wheel_sentences(found):
        output().done(found, sentence)
    if places := found.open_places.places:
        output().rows(places, ("at", "shard", "page", "since", "why"))
    if minutes := found.forecast.get("minutes"):
        output().rows(minutes, ("at", "tasks"))


def wheel_sentences(found: Wheel) -> list[str]:
    time, sweep = found.time_pointer, found.sweep_pointer
    return [
        f"now            {here(found.now)}",
        f"time pointer   {here(time.at)}, {time.lag_seconds:g} s behind",
        f"sweep pointer  {here(sweep.at)}, {sweep.lag_seconds:g} s behind",
        f"open places    {open_places_sentence(found.open_places)}",
        f"next hour      {forecast_sentence(found.forecast.get('tasks', 0))}",
    ]


def forecast_sentence(tasks: int) -> str:
    return f"about {tasks:,} calls in crowded minutes" if tasks else "no crowded minute"


def open_places_sentence(found: OpenPlaces) -> str:
    if not found.count:
        return "none"
    return f"{found.count:,}, the oldest for {found.oldest_age_seconds or 0:g} s"


@click.command(cls=Command)
@click.option(
    "--from", "begin", type=arguments.instant, metavar="TIME", help="An hour ago if left out."
)
@click.option("--to", "end", type=arguments.instant, metavar="TIME", help="In an hour if left out.")
@click.pass_context
def audit(context: click.Context, begin: datetime | None, end: datetime | None) -> None:
    """List inconsistent items. Fails if there are any."""
    findings = list(client().audit(begin=begin, end=end))
    if findings or output().is_json:
        output().rows(findings, ("wrong", "biz_type", "task_id", "at", "attribute", "detail"))
    else:
        output().note("Everything is consistent.")
    if findings:
        context.exit(1)
