"""`make advisories`: ask OSV whether anything that is pinned has a known vulnerability.

What was not asked is said: without an answer it ends well, since nobody can mend it, but aloud.
"""

import json
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Any

from infra.release.pinned import Pinned, deployed, tools

OSV = "https://api.osv.dev"
TIMEOUT_SECONDS = 20
_AT_ONCE = 1_000  # queries that OSV takes in one request


def main(source: str = OSV) -> int:
    packages = [*deployed(), *tools()]
    try:
        found = advisories(packages, source)
    except (OSError, ValueError) as error:  # no network, no answer, or none that is understood
        print(
            f"skipped: {len(packages)} packages were NOT checked, {source} did not answer: {error}"
        )
        return 0
    for one, ids in found.items():
        print(f"{one.name} {one.version}: {', '.join(ids)}")
    print(f"{len(packages)} packages were checked, {len(found)} have advisories")
    return 1 if found else 0


def advisories(packages: Sequence[Pinned], source: str) -> dict[Pinned, list[str]]:
    """By package, those that there are."""
    found = {}
    for first in range(0, len(packages), _AT_ONCE):
        some = packages[first : first + _AT_ONCE]
        queries = [{"package": {"purl": one.purl}} for one in some]
        results = _asked(f"{source}/v1/querybatch", {"queries": queries})["results"]
        for one, result in zip(some, results, strict=True):
            if ids := sorted(advisory["id"] for advisory in result.get("vulns", ())):
                found[one] = ids
    return found


def _asked(url: str, body: Any) -> Any:
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as reply:
        answer = json.loads(reply.read())
    if not isinstance(answer, dict) or not isinstance(answer.get("results"), list):
        raise ValueError("no results in its answer")
    return answer


if __name__ == "__main__":
    sys.exit(main())
