"""`duewheel console`: the console in a browser, with the rights of the command's caller."""

import signal
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

import click

from duewheel._sync.client import Duewheel
from duewheel.cli.connection import as_whom
from duewheel.cli.console.passing import Service
from duewheel.cli.console.server import ConsoleServer
from duewheel.cli.framework import Command, connection, output

LEADS_ON = '<!doctype html><meta http-equiv="refresh" content="0; url={}">\n'


@click.command(cls=Command)
@click.option("--port", type=click.IntRange(0, 65_535), default=0, help="0: any that is free.")
@click.option("--no-browser", is_flag=True, help="Only print the address.")
def console(port: int, no_browser: bool) -> None:
    """Show the console in the browser until Ctrl-C. Actions there are in your name."""
    target = connection()
    url = target.address()
    auth = target.auth(url)
    with Duewheel(url, auth, patience_seconds=0, transport=target.transport) as client:
        client.health()  # also loads the credentials, before several threads use them
    service = Service(url, auth, target.transport)
    with _until_ctrl_c(), ConsoleServer(port, service) as server:
        address = server.entrance.address
        with _opened(address, not no_browser):
            output().done({"url": address}, address)
            output().note(f"The console of {url}, {as_whom(auth)}. The address opens once.")
            server.serve_forever()


@contextmanager
def _opened(address: str, is_wanted: bool) -> Iterator[None]:
    """Open the address by a private file that leads to it, because other users of the machine see
    the browser's command line. The browser is started in a thread, since some commands return only
    when the browser ends."""
    with TemporaryDirectory(prefix="duewheel-console-") as folder:
        if is_wanted:
            way = Path(folder, "console.html")
            way.write_text(LEADS_ON.format(address))
            Thread(target=_open, args=[way.as_uri()], daemon=True).start()
        yield


def _open(address: str) -> None:
    if not webbrowser.open(address):
        click.echo("No browser was found: open the address yourself.", err=True)


@contextmanager
def _until_ctrl_c() -> Iterator[None]:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that files are removed, too
    try:
        yield
    except KeyboardInterrupt:
        return
