"""The processes of a soak, and the end of them."""

import os
import signal
import subprocess
import sys
from contextlib import suppress

import pytest

from local.stack import ROOT
from tests.support.bounds import quick_first

AT_WORK = "import os, time; os.write(1, b'at work\\n'); time.sleep(3_600)"
ENDED_WITHIN_SECONDS = 600  # far more than it takes on a busy machine, far less than their work
BEGIN = f"from tests.simulation.worlds import in_worlds; in_worlds(exec, [{AT_WORK!r}] * 2)"


@pytest.mark.parametrize(
    "ending", quick_first([signal.SIGKILL, signal.SIGTERM, signal.SIGINT], pytest.mark.exhaustive)
)
def test_the_worlds_end_with_their_parent_however_it_ends(ending: signal.Signals) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", BEGIN],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert parent.stdout is not None
    try:
        assert [parent.stdout.readline() for _ in range(2)] == [b"at work\n"] * 2
        parent.send_signal(ending)
        rest, _ = parent.communicate(
            timeout=ENDED_WITHIN_SECONDS
        )  # whoever lives holds the pipe open
        assert (rest, parent.returncode) == (b"", -ending)
    finally:
        with suppress(ProcessLookupError):  # none is left, as it should be
            os.killpg(parent.pid, signal.SIGKILL)
