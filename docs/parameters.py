"""Makes the tables of parameters in docs/reference.md anew, from template.yaml: `make examples`."""

import re
from pathlib import Path
from typing import Any

from local.aws.template import source_of

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference.md"
TEMPLATE: dict[str, Any] = source_of(ROOT / "template.yaml")
GROUPS: list[dict[str, Any]] = TEMPLATE["Metadata"]["AWS::CloudFormation::Interface"][
    "ParameterGroups"
]


def text() -> str:
    page = PAGE.read_text("utf-8")
    for group in GROUPS:
        heading = group["Label"]["default"].partition(" (")[0]
        rows = "".join(f"{_row(name)}\n" for name in group["Parameters"])
        before, found, after = page.partition(f" {heading}\n\n")
        if not found:
            raise ValueError(f"{PAGE.name} has nothing under {heading}")
        table = re.compile(r"^(\|.*\n\|[ |:-]*\n)(?:\|.*\n)*", re.M)
        page = before + found + table.sub(lambda head, rows=rows: head[1] + rows, after, count=1)
    return page


def _row(name: str) -> str:
    parameter = TEMPLATE["Parameters"][name]
    default = f"`{parameter['Default']}`" if parameter["Default"] != "" else "none"
    if "AllowedValues" in parameter:
        takes = ", ".join(f"`{value}`" for value in parameter["AllowedValues"])
    elif "MinValue" in parameter:
        takes = f"{parameter['MinValue']:,} to {parameter['MaxValue']:,}"
    else:
        takes = parameter["ConstraintDescription"]
    return f"| `{name}` | {default} | {takes} | {parameter['Description']} |"


if __name__ == "__main__":
    PAGE.write_text(text(), "utf-8")
