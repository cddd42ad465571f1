"""`make sbom`: what is deployed, and apart from it what the tools are, as CycloneDX 1.6.

From the requirements files, by which everything is installed: the same pins give the same bytes.
Licences, and who needs whom, are said of what is deployed.
"""

import json
import re
import sys
from importlib.metadata import requires
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from duewheel import __version__
from infra.release.licences import licence_of
from infra.release.pinned import DEPLOYED, ROOT, Pinned, deployed, tools

SERVICE = f"pkg:generic/duewheel@{__version__}"


def of_deployed() -> dict[str, Any]:
    packages = deployed()
    components = [
        {**_component(one), "licenses": [{"expression": licence_of(one.name)}]} for one in packages
    ]
    return _document("duewheel", components, _needs(packages))


def of_tools() -> dict[str, Any]:
    return _document("duewheel-tools", [_component(one) for one in tools()], [])


def _document(name: str, components: list[Any], dependencies: list[Any]) -> dict[str, Any]:
    service = {"type": "application", "bom-ref": SERVICE, "name": name, "version": __version__}
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": service},
        "components": components,
    }
    return document | ({"dependencies": dependencies} if dependencies else {})


def _component(one: Pinned) -> dict[str, Any]:
    """The hashes are of several files, of which one is installed; so they are no component's."""
    return {
        "type": "library",
        "bom-ref": one.purl,
        "name": one.name,
        "version": one.version,
        "purl": one.purl,
        "properties": [{"name": "duewheel:file:sha256", "value": text} for text in one.sha256],
    }


def _needs(packages: list[Pinned]) -> list[dict[str, Any]]:
    purls = {one.name: one.purl for one in packages}
    needed = {SERVICE: _asked_for()} | {one.purl: _needed_by(one.name) for one in packages}
    return [
        {"ref": ref, "dependsOn": [purls[name] for name in names if name in purls]}
        for ref, names in needed.items()
    ]


def _asked_for() -> list[str]:
    lines = (ROOT / DEPLOYED).with_suffix(".in").read_text("utf-8").splitlines()
    return sorted(line for line in lines if line and not line.startswith("#"))


def _needed_by(name: str) -> list[str]:
    """Without its extras."""
    asked = [Requirement(text) for text in requires(name) or []]
    here = [one for one in asked if one.marker is None or one.marker.evaluate({"extra": ""})]
    return sorted(re.sub("[-_.]+", "-", one.name).lower() for one in here)


def main(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for name, document in (("sbom.json", of_deployed()), ("sbom-tools.json", of_tools())):
        (folder / name).write_text(json.dumps(document, indent=2) + "\n", "utf-8")
        print(f"{folder / name}: {len(document['components'])} packages")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
