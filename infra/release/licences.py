"""`make licences`: docs/licences.md, from what the packages say of themselves.

A licence is an SPDX expression. What says none that is known here is an error, and what is deployed
may only have one that asks for no more than to be named.
"""

import sys
from collections.abc import Collection, Iterable
from importlib.metadata import metadata
from pathlib import Path

from infra.release.pinned import Pinned, deployed, pinned_in

PERMISSIVE = {
    "Apache-2.0",
    "Apache-2.0 OR BSD-2-Clause",
    "Apache-2.0 OR BSD-3-Clause",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "MIT",
    "MIT-0",
    "PSF-2.0",
}
# Of tools, which are not handed on: files of their own stay under it, or it is CPython's old one.
OF_TOOLS = PERMISSIVE | {"MPL-2.0", "Apache-2.0 AND CNRI-Python"}

_IN_OTHER_WORDS = {
    "Apache 2.0": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "BSD 2-Clause License": "BSD-2-Clause",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}
# Read in their licence files: their metadata names a family, or two, but not which of it.
_READ = {
    "aws-lambda-powertools": "MIT-0",
    "cronsim": "BSD-3-Clause",
    "itsdangerous": "BSD-3-Clause",
    "jinja2": "BSD-3-Clause",
    "mpmath": "BSD-3-Clause",
    "python-dateutil": "Apache-2.0 OR BSD-3-Clause",
    "sympy": "BSD-3-Clause",
    "trove-classifiers": "Apache-2.0",
}


class UnknownLicence(Exception):
    """Read its licence, and say here what it is."""


def licence_of(name: str, known: Collection[str] = OF_TOOLS) -> str:
    said = metadata(name)
    classifiers = [
        text.rpartition(" :: ")[2]
        for text in said.get_all("Classifier") or []
        if text.startswith("License ::")
    ]
    words = (_READ.get(name), said.get("License-Expression"), said.get("License"), *classifiers)
    for text in filter(None, words):
        if (licence := _IN_OTHER_WORDS.get(text, text)) in known:
            return licence
    raise UnknownLicence(f"{name}: {[text for text in words if text]}")


def page() -> str:
    of_service = deployed()
    names = {one.name for one in of_service}
    tools = {
        one.name: one
        for file in ("requirements/dev.txt", "requirements/check.txt")
        for one in pinned_in(file)
        if one.name not in names and not one.is_for_windows_alone
    }
    return _PAGE.format(
        deployed=_table(of_service, PERMISSIVE),
        tools=_table((tools[name] for name in sorted(tools)), OF_TOOLS),
    )


def _table(packages: Iterable[Pinned], known: Collection[str]) -> str:
    rows = [f"| {one.name} | {licence_of(one.name, known)} |" for one in packages]
    return "\n".join(["| package | licence |", "|---|---|", *rows])


_PAGE = """# Licences

Duewheel is under the [Apache License 2.0](../LICENSE). `make licences` writes this page from what
the packages say of themselves; `make check` holds the two together, and fails for a licence that
nobody has looked at.

## What is deployed

The packages of the vendor layer. All of these may be handed on by whoever names them.

{deployed}

## What checks, tests and the local stack need

Installed on the machines of contributors, and handed on to nobody. The SAM CLI, and what only
`make bench`, `make second-opinion` and `make deploy-emulated` use, have environments of their own
and are not listed here.

{tools}
"""


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), "utf-8")
