"""The shop at work: on a port of its own, and on a stack of the test's own."""

from threading import Thread

import httpx
import pytest
from werkzeug.serving import make_server

from duewheel import Receiver
from shop.orders import Orders
from shop.web import make_app

SECRET = "whsec_AgICAgICAgICAgICAgICAgICAgICAgIC"


@pytest.fixture
def orders_called_at(duewheel):
    """Orders whose callbacks go to this address, signed."""
    duewheel.client.businesses.configure("orders", signing_secrets=[SECRET])
    return lambda callback: Orders(duewheel.client, callback)


@pytest.fixture
def shop(duewheel, orders_called_at):
    server = make_server("127.0.0.1", 0, lambda *call: app(*call), threaded=True)
    url = f"http://127.0.0.1:{server.port}"
    # Signatures are five minutes old at most, by the clock that the test moves.
    receiver = Receiver(SECRET, now=lambda: duewheel.now.timestamp())
    app = make_app(orders_called_at(f"{url}/orders/close"), receiver)
    Thread(target=server.serve_forever, daemon=True).start()
    with httpx.Client(base_url=url) as browser:
        yield browser
    server.shutdown()
    server.server_close()
