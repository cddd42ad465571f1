"""`duewheel overview`: what is wrong now, and what became of the last hour's tasks."""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import click

from duewheel.cli.businesses import late
from duewheel.cli.framework import Command, client, output
from duewheel.cli.shown import here
from duewheel.overviews import BusinessNow, Overview

PAUSE_SECONDS = 15.0
DEATHS = ("last_error", "reason", "tasks", "businesses", "last_died_at", "last_task_id")
BUSINESSES = (
    *("biz_type", "state", "due", "delivered", "failed_attempts", "dead", "pending", "p99_late"),
    "in_flight",
)


@click.command(cls=Command)
@click.option("--watch", is_flag=True, help="Show it anew every 15 seconds, until interrupted.")
def overview(watch: bool) -> None:
    """Show what is wrong now, the last hour, and what tasks died of."""
    api = client()
    for pages in shown(lambda: list(api.overview()), is_repeated=watch):
        if output().is_json:
            for page in pages:
                output().value(page)
            continue
        if watch:
            click.clear()
        _show(pages)


def shown(
    look: Callable[[], list[Overview]],
    *,
    is_repeated: bool,
    pause: Callable[[float], None] = time.sleep,
) -> Iterator[list[Overview]]:
    yield look()
    while is_repeated:
        pause(PAUSE_SECONDS)
        yield look()


def _show(pages: list[Overview]) -> None:
    last, sums = pages[-1], _sums(pages)
    for sentence in (
        f"now        {here(last.now)}, {_looked_at(pages)} businesses looked at",
        f"last hour  {', '.join(sums) or 'no task fell due'}, up to {here(last.end)}",
    ):
        output().done(last, sentence)
    if businesses := [_row(one) for page in pages for one in page.businesses]:
        output().rows(businesses, BUSINESSES)
    if groups := [_death(group) for page in pages for group in page.deaths.groups]:
        output().rows(groups, DEATHS)


def _looked_at(pages: Iterable[Overview]) -> int:
    return sum(page.looked_at.get("businesses", 0) for page in pages)


def _sums(pages: Iterable[Overview]) -> list[str]:
    minutes = [minute for page in pages for minute in page.minutes]
    names = ("delivered", "pending", "dead", "expired", "cancelled", "failed_attempts")
    counts = {name: sum(getattr(minute, name) for minute in minutes) for name in names}
    return [f"{count:,} {name.replace('_', ' ')}" for name, count in counts.items() if count]


def _row(one: BusinessNow) -> dict[str, Any]:
    permits = one.usage.calls_in_flight if one.usage else None
    hosts = ", ".join(breaker.host for breaker in one.breakers)
    states = (
        ("paused", one.paused),
        (f"{one.paused_flow_keys} flow keys paused", one.paused_flow_keys),
        (f"blocked: {hosts}", one.breakers),
        ("slow lane", one.lane == "slow"),
        (f"{one.died_since} just died", one.died_since),
    )
    return {
        "biz_type": one.biz_type,
        "state": ", ".join(text for text, holds in states if holds) or None,
        "due": one.hour.created,
        "delivered": one.hour.delivered,
        "failed_attempts": one.hour.failed_attempts,
        "dead": one.hour.dead,
        "pending": one.hour.pending,
        "p99_late": late(one.hour, 0.99),
        "in_flight": permits and f"{permits.used} of {one.calls_in_flight}",
    }


def _death(group: Any) -> dict[str, Any]:
    of = ", ".join(f"{one['biz_type']} {one['tasks']}" for one in group.businesses)
    return {name: getattr(group, name) for name in DEATHS} | {"businesses": of}
