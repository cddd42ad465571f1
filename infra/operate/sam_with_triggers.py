"""The SAM CLI, whose change set sets the rollback triggers of the stack. It has no option for them.

They are in the environment, as CreateChangeSet takes them.
"""

import json
import os
import sys
from typing import Any

from botocore.handlers import BUILTIN_HANDLERS

VARIABLE = "ROLLBACK_CONFIGURATION"


def set_triggers(params: dict[str, Any], **_: Any) -> None:
    if VARIABLE in os.environ:
        params["RollbackConfiguration"] = json.loads(os.environ[VARIABLE])


def register() -> None:
    """For every session of the SDK from now on."""
    BUILTIN_HANDLERS.append(("provide-client-params.cloudformation.CreateChangeSet", set_triggers))


if __name__ == "__main__":
    from samcli.cli.main import cli

    register()
    sys.exit(cli(prog_name="sam"))
