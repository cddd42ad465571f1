"""`duewheel local`: the whole service on this machine, in the foreground."""

import signal
import subprocess
import sys

import click

from duewheel.cli.failures import Failed
from duewheel.cli.framework import Command
from duewheel.local_stack import stack_environment, stack_root


@click.command(cls=Command)
@click.option("--port", type=click.IntRange(0, 65_535), default=8080, show_default=True)
@click.option("--auth", is_flag=True, help="Ask for API keys; a first one is printed.")
@click.option("--faults", type=click.FloatRange(0, 0.5), default=0, help="Let things go wrong.")
def local(port: int, auth: bool, faults: float) -> None:
    """Run the whole service on this machine until Ctrl-C. Its data end with it."""
    environment = {
        **stack_environment(port),
        "LOCAL_AUTH": "on" if auth else "off",
        "FAULTS": str(faults),
    }
    process = subprocess.Popen([sys.executable, "-m", "local"], cwd=stack_root(), env=environment)
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    if code := _ended(process):
        raise Failed(f"The local stack has ended with {code}.")


def _ended(process: "subprocess.Popen[bytes]") -> int:
    """Wait for the process: the terminal's Ctrl-C reaches it, too, and it stops by itself."""
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue
