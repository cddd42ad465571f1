"""`make audit`: read a range of seconds, print what is inconsistent, and fail if anything is.

By default the range is the last day, but not before the origin of the wheel, and an hour ahead. It
only reads: half a read unit for each empty second, the items' own units for the rest.
"""

import argparse
import sys
import urllib.error
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

from botocore.exceptions import BotoCoreError

from infra.operate.signed_http import Refused, get_json

BACK = timedelta(days=1)
AHEAD = timedelta(hours=1)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make audit", description=__doc__)
    parser.add_argument("url", help="ApiUrl of the stack, or http://127.0.0.1:8080")
    parser.add_argument("--from", dest="first", help="RFC 3339, such as 2030-01-31T08:00:00Z")
    parser.add_argument("--to", dest="last")
    args = parser.parse_args(arguments)
    try:
        first, last = _range(args.url.rstrip("/"), args.first, args.last)
        findings = _walked(args.url.rstrip("/"), first, last)
    except (BotoCoreError, Refused, urllib.error.URLError) as error:
        print(f"The audit did not end: {error}", file=sys.stderr)
        return 2
    if not findings:
        print(f"{first} to {last}: nothing is wrong")
        return 0
    for row in _rows(findings):
        print(row)
    return 1


def _range(url: str, first: str | None, last: str | None) -> tuple[str, str]:
    wheel = get_json(f"{url}/v1/wheel")
    now, origin = (datetime.fromisoformat(wheel[name]) for name in ("now", "origin"))
    return first or _text(max(origin, now - BACK)), last or _text(now + AHEAD)


def _walked(url: str, first: str, last: str) -> list[dict[str, Any]]:
    """Each finding once, even if several calls answered it."""
    findings: dict[str, dict[str, Any]] = {}
    for answer in _answers(f"{url}/v1/audit?from={quote(first)}&to={quote(last)}"):
        for finding in answer["findings"]:
            findings.setdefault(str(finding), finding)
        print(f"audited until {answer['audited_until']}, found {len(findings)}", file=sys.stderr)
    return list(findings.values())


def _answers(url: str) -> Iterator[dict[str, Any]]:
    cursor = ""
    while True:
        answer = get_json(f"{url}&cursor={cursor}" if cursor else url)
        yield answer
        cursor = answer["cursor"]
        if not cursor:
            return


def _rows(findings: list[dict[str, Any]]) -> Iterator[str]:
    rows = [("wrong", "task", "detail")]
    for finding in findings:
        where = " ".join(filter(None, (finding["task_id"], finding["at"], finding["attribute"])))
        rows.append((finding["wrong"], where, finding["detail"]))
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    for wrong, where, detail in rows:
        yield f"{wrong:<{widths[0]}}  {where:<{widths[1]}}  {detail}"


def _text(instant: datetime) -> str:
    return instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")


if __name__ == "__main__":
    sys.exit(main())
