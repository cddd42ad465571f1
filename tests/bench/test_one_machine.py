"""What `make bench` makes of what it measured; the measuring itself is left to the benchmark."""

import json
import socket
import sys
import time
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.request import Request, urlopen
from xml.etree import ElementTree

import boto3
import pytest

from bench.one_machine import emulated_aws, plots
from bench.one_machine.conditions import Conditions
from bench.one_machine.figures import arrived, percentile
from bench.one_machine.outputs import BEGIN, DOCS, END, between_the_marks, drawn
from bench.one_machine.pacing import paced
from bench.one_machine.processes import Process, python
from bench.one_machine.results import Record, Results
from bench.one_machine.tables import everything
from bench.one_machine.verdicts import better_than_ours, worse_than_ours
from local.aws.emulator import Emulator
from tests.support.cases import each_case
from tests.support.clock import ManualClock


def burst(contender: str, tasks: int, late_ms: float, rate: float, **more: Any) -> Record:
    came = arrived({0: 0, 1: 0}, [(0, late_ms, True), (1, late_ms, True)])
    cpu = {"own": 1.0, "server": 2.0}
    names = ("delivered", "lost", "repeated", "early", "p50_ms", "p99_ms", "max_ms", "curve_ms")
    return {
        "contender": contender,
        "case": "burst",
        "tasks": tasks,
        "wait_ms": 0,
        "batch": tasks > 1_000,
        "created_per_second": rate,
        "delivered_per_second": rate,
        "create_cpu_ms": cpu,
        "deliver_cpu_ms": cpu,
        **{name: getattr(came, name) for name in names},
        **more,
    }


def results(*records: Record, load: float = 0.0, **skipped: str) -> Results:
    found = Conditions("2026-11-01", 2, "a processor", "3.11.7", load, ("a server 1.0",), {})
    counted = {1: {"write units": 4.0}, 100: {"write units": 2.06}}
    return Results(found, list(records), skipped, counted)


def test_a_call_is_late_by_its_first_arrival_and_counts_once() -> None:
    came = arrived(
        {0: 1_000, 1: 1_000, 2: 1_000}, [(0, 1_010.0, True), (1, 1_030.0, True), (0, 9_000.0, True)]
    )
    assert (came.delivered, came.lost, came.repeated, came.early) == (2, 1, 1, 0)
    assert (came.p50_ms, came.max_ms, came.last_ms) == (10.0, 30.0, 1_030.0)
    assert (came.curve_ms[0], came.curve_ms[-1]) == (10.0, 30.0)


def test_an_early_call_is_counted_as_early() -> None:
    assert arrived({0: 1_000}, [(0, 999.5, True)]).early == 1


def test_a_call_whose_caller_died_is_not_delivered_until_it_is_made_again() -> None:
    cut_off = arrived({0: 0, 1: 0}, [(0, 5.0, True), (1, 6.0, False)])
    assert (cut_off.delivered, cut_off.lost, cut_off.repeated) == (1, 1, 0)
    again = arrived({0: 0, 1: 0}, [(0, 5.0, True), (1, 6.0, False), (1, 70.0, True)])
    assert (again.delivered, again.lost, again.repeated, again.max_ms) == (2, 0, 1, 70.0)


def test_an_unexpected_call_ends_the_run() -> None:
    with pytest.raises(ValueError, match="unexpected calls"):
        arrived({0: 1_000}, [(7, 1_000.0, True)])


@each_case(("percent", "value"), [(0, 1), (50, 50), (99, 99), (100, 100)])
def test_a_percentile_is_a_value_that_was_there(percent: int, value: int) -> None:
    assert percentile(range(1, 101), percent) == value


def test_each_list_names_only_who_is_clearly_better_or_worse() -> None:
    found = results(
        burst("Duewheel", 1_000, late_ms=100, rate=100),
        burst("Quick", 1_000, late_ms=10, rate=1_000),
        burst("Equal", 1_000, late_ms=101, rate=99),
        burst("Slow", 1_000, late_ms=5_000, rate=10),
        burst("Duewheel, `make local`", 1_000, late_ms=1, rate=1),
    )
    assert "- created singly: Quick 1,000/s; Duewheel 100/s" in better_than_ours(found)
    assert "- p99 late, 1,000 in one second: Quick 10 ms; Duewheel 100 ms" in better_than_ours(
        found
    )
    assert "- created singly: Slow 10/s; Duewheel 100/s" in worse_than_ours(found)
    for text in (better_than_ours(found), worse_than_ours(found)):
        assert "Equal" not in text
        assert "make local" not in text


def test_whoever_was_left_out_is_named_with_what_it_needs() -> None:
    text = everything(results(burst("Duewheel", 1_000, 5, 50), Celery="a package"))
    assert "Left out: Celery; it needs a package." in text


def test_figures_of_a_busy_machine_say_so() -> None:
    records = [burst("Duewheel", 1_000, 5, 50)]
    assert "busy" in everything(results(*records, load=3.0))
    assert "busy" not in everything(results(*records, load=0.1))


def test_every_line_of_a_plot_has_its_name_in_its_colour() -> None:
    svg = plots.lateness("Late", {"A & B": [1.0, 20.0], "C": [5.0, 200_000.0]})
    root = ElementTree.fromstring(svg)
    space = "{http://www.w3.org/2000/svg}"
    strokes = [line.get("stroke") for line in root.iter(f"{space}polyline")]
    names = {text.text: text.get("fill") for text in root.iter(f"{space}text")}
    assert strokes == [names["A & B"], names["C"]]


def test_a_run_without_most_of_the_contenders_can_be_drawn() -> None:
    svgs = drawn(results(burst("Duewheel", 1_000, 5, 50)))
    assert all(ElementTree.fromstring(svg) is not None for svg in svgs.values())


def test_only_what_stands_between_the_marks_is_rewritten() -> None:
    page = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    assert between_the_marks(page, "new\n") == f"before\n{BEGIN}\n\nnew\n\n{END}\nafter\n"
    with pytest.raises(SystemExit, match="lacks the marks"):
        between_the_marks("no marks", "new")


def test_the_page_of_figures_has_a_place_for_them() -> None:
    page = (DOCS / "performance.md").read_text()
    assert "new\n" in between_the_marks(page, "new\n")


def test_things_are_done_in_order_and_all_of_them() -> None:
    assert paced([3, 1, 2], 0, lambda thing: thing * 2) == [6, 2, 4]


def test_the_sink_notes_each_call_under_its_task(tmp_path: Path) -> None:
    sink = Process(python("bench.one_machine.sink"), tmp_path / "log", speaks=True)
    try:
        url = f"http://127.0.0.1:{sink.line()}/case"
        for path in ("/5", "/7?wait_ms=1", "/5"):
            with urlopen(Request(f"{url}{path}", data=b"{}")) as answer:
                assert answer.status == 200
        with urlopen(url) as answer:
            arrivals = json.load(answer)
        assert [number for number, _, _ in arrivals] == [5, 7, 5]
        assert all(answered for _, _, answered in arrivals)
        assert all(later[1] >= sooner[1] for sooner, later in pairwise(arrivals))
    finally:
        sink.stop()
    assert sink.running.returncode is not None


def test_the_sink_does_not_count_a_call_as_answered_whose_caller_is_gone(tmp_path: Path) -> None:
    sink = Process(python("bench.one_machine.sink"), tmp_path / "log", speaks=True)
    try:
        port = int(sink.line())
        with socket.create_connection(("127.0.0.1", port)) as caller:
            caller.sendall(b"POST /case/1?wait_ms=100 HTTP/1.1\r\ncontent-length: 0\r\n\r\n")
            while count(port) == 0:
                pass  # it is noted at once, and answered later
        with urlopen(Request(f"http://127.0.0.1:{port}/case/2?wait_ms=200", data=b"{}")):
            pass  # by then the answer to the first was due
        with urlopen(f"http://127.0.0.1:{port}/case") as answer:
            found = [(number, answered) for number, _, answered in json.load(answer)]
        assert found == [(1, False), (2, True)]
    finally:
        sink.stop()


def count(port: int) -> int:
    with urlopen(f"http://127.0.0.1:{port}/case/count") as answer:
        return int(answer.read())


def test_a_killed_process_takes_its_children_along(tmp_path: Path) -> None:
    code = (
        "import subprocess as s; p = s.Popen(['sleep', '60']); print(p.pid, flush=True); p.wait()"
    )
    process = Process([sys.executable, "-c", code], tmp_path / "log", speaks=True)
    child = int(process.line())
    process.kill()
    for _ in range(1_000):
        if has_ended(child):
            return
        time.sleep(0.01)
    pytest.fail("the child lives on")


def has_ended(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return True
    return stat.rpartition(")")[2].split()[0] == "Z"  # nobody has asked yet how it ended


def test_a_long_poll_of_the_emulator_ends_with_the_first_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Emulator(ManualClock()) as emulator:
        sqs = boto3.client("sqs")
        url = sqs.create_queue(QueueName="work")["QueueUrl"]
        waits: list[float] = []

        def send(seconds: float) -> None:
            waits.append(seconds)
            sqs.send_message(QueueUrl=url, MessageBody="work")

        monkeypatch.setattr(emulated_aws, "time", SimpleNamespace(sleep=send, monotonic=lambda: 0))
        asked = json.dumps({"QueueUrl": url, "WaitTimeSeconds": 1}).encode()
        answered = json.loads(emulated_aws.after_waiting(emulator, asked))
    assert answered == {"QueueUrl": url, "WaitTimeSeconds": 0}
    assert len(waits) == 1
