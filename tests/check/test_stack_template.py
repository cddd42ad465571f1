"""The linter accepts the template of an application in the guide."""

import subprocess
import sys
from pathlib import Path

from tests.support.stack_requests import template_in_guide


def test_the_template_of_the_guide_is_one(tmp_path: Path) -> None:
    path = tmp_path / "reports-app.yaml"
    path.write_text(template_in_guide(), encoding="utf-8")
    lint = Path(sys.executable).with_name("cfn-lint")
    linted = subprocess.run([lint, path], capture_output=True, text=True, check=False)
    assert (linted.returncode, linted.stdout) == (0, ""), linted.stdout
