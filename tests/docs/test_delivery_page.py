"""docs/delivery.md says what the rules hold."""

import re
from pathlib import Path

from duewheel.rules.backoff import DEFAULT_RETRY, delay_ms
from duewheel.rules.status_lists import RETRY_DEFAULT, STOP_DEFAULT

PAGE = (Path(__file__).parents[2] / "docs" / "delivery.md").read_text("utf-8")
UNITS = {"h": 3600, "min": 60, "s": 1}


def seconds(text: str) -> int:
    return sum(int(number) * UNITS[unit] for number, unit in re.findall(r"(\d+) (h|min|s)\b", text))


def test_the_table_of_retries_is_that_of_the_default_policy() -> None:
    rows = re.findall(r"^\| (\d+) \| ([^|]*) \| ([^|]*) \|$", PAGE, re.M)
    waits = [delay_ms(DEFAULT_RETRY, made, 1.0) for made in range(1, 16)]
    assert [int(number) for number, *_ in rows] == list(range(1, 17))
    assert [seconds(wait) * 1000 for _, wait, _ in rows[1:]] == waits
    after = 0
    for _, wait, at in rows:
        after += seconds(wait)
        assert seconds(at) == after
    assert delay_ms(DEFAULT_RETRY, 16, 1.0) is None


def test_the_statuses_of_the_page_are_the_default_lists() -> None:
    (retried,) = re.findall(r"^\| answers (401.*?) \| failed", PAGE, re.M)
    (stopped,) = re.findall(r"^\| answers (400.*?) \| stopped", PAGE, re.M)
    for text, entries in ((retried, RETRY_DEFAULT), (stopped, STOP_DEFAULT)):
        assert re.findall(r"\dxx|\d{3}", text) == [str(entry) for entry in entries]
