"""The results of a run as Markdown."""

from collections.abc import Iterable, Sequence

from bench.one_machine.results import Record, Results
from bench.one_machine.verdicts import better_than_ours, worse_than_ours

HELD = (
    " A task that a worker keeps for longer than that is delivered again, to be kept once more; by "
    "default it is an hour, and a month has 720."
)


def everything(results: Results) -> str:
    parts = [
        _conditions(results),
        "**Lateness**, p50 / p99 / max in milliseconds, calls answered at once:",
        _lateness(results),
        "**Creating and delivering**, tasks a second, one client; delivered: from the begin of the "
        "second to the last call:",
        _rates(results),
        "**Calls that take 50 ms**, Duewheel:",
        _with_wait(results),
        "**CPU**, milliseconds a task in the burst of 10,000: what runs the tasks / the server "
        "that stores them. The process that creates the tasks is left out, except for APScheduler, "
        "where it is the same one:",
        _cpu(results),
        "**Duewheel's requests and units a task**, counted from created to swept, no key, created "
        "singly, list index on:",
        _counted(results),
        _killed_heading(results),
        _killed(results),
        "**An instant a month ahead:**",
        _month(results),
        "**Where others did better than Duewheel:**",
        better_than_ours(results),
        "**Where Duewheel did better:**",
        worse_than_ours(results),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _conditions(results: Results) -> str:
    found = results.conditions
    busy = (
        f" **The machine was busy with other work (load {found.load_before:.1f} before the run): "
        "ratios within a row say more than milliseconds, and neither is worth much.**"
        if found.is_busy
        else ""
    )
    packages = ", ".join(f"{name} {version}" for name, version in found.packages.items())
    lines = [
        f"Measured on {found.day}: {found.cores} cores of {found.processor}, "
        f"Python {found.python}; {'; '.join((*found.servers, packages))}.{busy}"
    ]
    lines += [f"\nLeft out: {name}; it needs {what}." for name, what in results.skipped.items()]
    return "\n".join(lines)


def _lateness(results: Results) -> str:
    rows = []
    for name in _names(results.of("burst", wait_ms=0)):
        few, many = (_only(results, name, "burst", tasks=n, wait_ms=0) for n in (1_000, 10_000))
        steady = _only(results, name, "steady", wait_ms=0)
        lost = sum(r["lost"] + r["repeated"] for r in (few, many, steady) if r)
        early = sum(r["early"] for r in (few, many, steady) if r)
        rows.append([name, *map(_late, (steady, few, many)), f"{lost}", f"{early}"])
    head = ["", "50 a second", "1,000 in one second", "10,000 in one second"]
    return _table([*head, "lost or repeated", "early"], rows)


def _rates(results: Results) -> str:
    rows = []
    for name in _names(results.of("burst", wait_ms=0)):
        few, many = (_only(results, name, "burst", tasks=n, wait_ms=0) for n in (1_000, 10_000))
        single = few["created_per_second"] if few else None
        batch = many["created_per_second"] if many and many["batch"] else None
        delivered = [r["delivered_per_second"] if r else None for r in (few, many)]
        rows.append([name, *map(_whole, (single, batch, *delivered))])
    return _table(
        ["", "created singly", "created in batches", "delivered of 1,000", "delivered of 10,000"],
        rows,
    )


def _with_wait(results: Results) -> str:
    rows = [
        [
            f"{r['tasks']:,} in one second" if r["case"] == "burst" else "50 a second",
            _late(r),
            _whole(r.get("delivered_per_second")),
            f"{r['lost'] + r['repeated']}",
        ]
        for case in ("steady", "burst")
        for r in results.of(case, wait_ms=50)
    ]
    return _table(["", "late, ms", "delivered a second", "lost or repeated"], rows)


def _cpu(results: Results) -> str:
    rows = [
        [r["contender"], *(f"{r[p]['own']:.2f} / {r[p]['server']:.2f}" for p in _PHASES)]
        for r in results.of("burst", wait_ms=0, tasks=10_000)
    ]
    return _table(["", "until created", "until delivered"], rows)


_PHASES = ("create_cpu_ms", "deliver_cpu_ms")


def _counted(results: Results) -> str:
    crowds = [*results.counted]
    whats = [*results.counted[crowds[0]]]
    rows = [[what, *(f"{results.counted[n][what]:.2f}" for n in crowds)] for what in whats]
    return _table(["", *(f"{n:,} due at once" for n in crowds)], rows)


def _killed_heading(results: Results) -> str:
    return (
        "**`kill -9` of the worker, in the middle of 1,000 calls of 50 ms**, and a new one a "
        "second later. Before, 100 more tasks of the same second had been cancelled. "
        "A call whose worker was killed before the answer does not count as delivered:"
    )


def _killed(results: Results) -> str:
    rows = [
        [
            r["contender"],
            f"{r['delivered_alone']:,}",
            f"{r['delivered'] - r['delivered_alone']:,}" if r["mended"] else "",
            f"{r['lost']:,}",
            f"{r['repeated']:,}",
            f"{r['last_after_kill_seconds']:.0f} s",
            f"{r['cancels_confirmed']} of {r['cancelled']}",
            f"{r['cancelled_but_called']}",
            _whole(r["cancelled_per_second"]),
        ]
        for r in results.of("killed")
    ]
    head = ["", "delivered", "by hand", "lost", "repeated", "last call, after the kill"]
    return _table([*head, "cancels confirmed", "called all the same", "cancels a second"], rows)


def _month(results: Results) -> str:
    lines = [
        f"- {r['contender']}: {r['waiting_after_kill']} of 1 still to be called after a `kill -9` "
        "of the worker."
        for r in results.of("month")
    ]
    lines += [
        f"- {r['contender']}, with the clock moved by a month: called {_times(r['calls'])}."
        for r in results.of("month by the clock")
    ]
    lines += [
        f"- {r['contender']}, {r['ahead_seconds']} s ahead with a visibility timeout of "
        f"{r['visibility_seconds']} s: called {_times(r['calls'])}.{HELD if r['calls'] > 1 else ''}"
        for r in results.of("held")
    ]
    return "\n".join(lines)


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _only(results: Results, name: str, case: str, **wanted: object) -> Record | None:
    return next(iter(results.of(case, contender=name, **wanted)), None)


def _names(records: Iterable[Record]) -> list[str]:
    return list(dict.fromkeys(record["contender"] for record in records))


def _late(record: Record | None) -> str:
    if record is None:
        return ""
    return " / ".join(f"{record[name]:,.0f}" for name in ("p50_ms", "p99_ms", "max_ms"))


def _whole(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
