"""The table of rights in docs/security.md is the template's."""

import re
from pathlib import Path

from local.aws.resources import Resources
from tests.support.rights_in_use import given

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
(SECTION,) = re.findall(r"^## Rights of the functions$(.*?)^## ", PAGE, re.MULTILINE | re.DOTALL)


def test_the_table_of_rights_says_what_each_role_allows(resources: Resources) -> None:
    told = {
        (function, resource, action)
        for function, resource, actions in re.findall(
            r"^\| (\w+) \| ([\w :]+) \| ([\w, ]+) \|$", SECTION, re.MULTILINE
        )
        for action in actions.split(", ")
    }
    allowed = {
        (
            right.role.removesuffix("Role").lower(),
            right.resource.rpartition("duewheel-")[2].replace("/index/", " by its index "),
            right.action.partition(":")[2],
        )
        for right in given(resources)
        if not right.action.startswith("logs:")
    }
    assert told - {("function", "resource", "may")} == allowed
