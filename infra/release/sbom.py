"""`make sbom`: writes the bill of what is deployed, and the bill of the tools, as CycloneDX.

cyclonedx-py reads hashes from the requirements files, and licences and needs from the packages that
are installed. The bill of what is deployed has all three. The same pins give the same bytes.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DEPLOYED = ROOT / "layers/vendor/requirements.txt"
TOOLS = ROOT / "requirements"
CYCLONEDX = ROOT / ".venv-supply/bin/cyclonedx-py"
OPTIONS = ["--output-reproducible", "--no-validate", "--pyproject", ROOT / "pyproject.toml"]

Bill = dict[str, Any]


def bill(kind: str, source: Path | str, given: str = "") -> Bill:
    command = [CYCLONEDX, kind, *OPTIONS, source]
    done = subprocess.run(command, input=given, check=True, capture_output=True, text=True)
    made: Bill = json.loads(done.stdout)
    return made


def of_deployed() -> Bill:
    pinned = {one["purl"]: one for one in bill("requirements", DEPLOYED)["components"]}
    made = bill("environment", ROOT / ".venv")
    made["components"] = [one for one in made["components"] if one["purl"] in pinned]
    for one in made["components"]:
        one.setdefault("externalReferences", []).extend(pinned[one["purl"]]["externalReferences"])
        one.pop("properties", None)  # extras that any package of the environment names
    listed = {one["bom-ref"] for one in (*made["components"], made["metadata"]["component"])}
    made["dependencies"] = [
        {"ref": one["ref"], "dependsOn": [ref for ref in one.get("dependsOn", ()) if ref in listed]}
        for one in made["dependencies"]
        if one["ref"] in listed
    ]
    return made


def of_tools() -> Bill:
    """Each version once, and none that is deployed."""
    files = sorted(TOOLS.glob("*.txt"))
    made = bill("requirements", "-", "".join(path.read_text("utf-8") for path in files))
    deployed = {one["purl"] for one in bill("requirements", DEPLOYED)["components"]}
    pinned = {one["purl"]: one for one in made["components"] if one["purl"] not in deployed}
    made["components"] = [pinned[purl] for purl in sorted(pinned)]
    made["metadata"]["component"]["name"] += "-tools"
    del made["dependencies"]
    return made


def main(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for name, made in (("sbom.json", of_deployed()), ("sbom-tools.json", of_tools())):
        (folder / name).write_text(json.dumps(made, indent=2) + "\n", "utf-8")
        print(f"{folder / name}: {len(made['components'])} packages")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
