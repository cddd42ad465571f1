"""The shop at work: on a port of its own, and on a stack of the test's own."""

import socket
from threading import Thread

import httpx
import pytest
import uvicorn

from duewheel import AsyncDuewheel, AsyncReceiver
from shop.database import Database, SeenTasks
from shop.orders import BankDown
from shop.web import make_app

SECRET = "whsec_AgICAgICAgICAgICAgICAgICAgICAgIC"


class Bank:
    """Down for the next `failures` calls."""

    def __init__(self) -> None:
        self.failures = 0
        self.charged: list[int] = []

    async def charge(self, number: int) -> None:
        if self.failures:
            self.failures -= 1
            raise BankDown
        self.charged.append(number)


@pytest.fixture
def bank():
    return Bank()


@pytest.fixture
def database(tmp_path):
    database = Database(tmp_path / "shop.sqlite")
    yield database
    database.close()


@pytest.fixture
def shop(duewheel, bank, database):
    listening = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"

    def now() -> float:
        return duewheel.now.timestamp()  # signatures are five minutes old at most

    receiver = AsyncReceiver(SECRET, SeenTasks(database, now), now=now)
    client = AsyncDuewheel(duewheel.url)
    app = make_app(client, database, receiver, bank.charge, url=url, secret=SECRET)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    serving = Thread(target=server.run, kwargs={"sockets": [listening]})
    serving.start()
    while not server.started:
        assert serving.is_alive()
        serving.join(0.01)
    with httpx.Client(base_url=url) as browser:
        yield browser
    server.should_exit = True
    serving.join()
