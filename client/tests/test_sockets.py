"""Failures of real sockets, and the exceptions that the client raises for them."""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread

import pytest

from duewheel import Duewheel, OutcomeUnknown, Unreachable


@contextmanager
def server(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """Accepts one request, and passes its connection to `answer`."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65_536)
                answer(connection)

        thread = Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{listening.getsockname()[1]}"
        thread.join()


def create(address: str, scheme: str = "http", timeout_seconds: float = 35.0) -> None:
    with Duewheel(
        f"{scheme}://{address}", timeout_seconds=timeout_seconds, patience_seconds=0
    ) as client:
        client.tasks.create("orders", delay=1, callback="https://example.com/hook")


@pytest.mark.parametrize(
    "partial_answer",
    [b"", b"HTTP/1.1 201 Created\r\nconte", b"HTTP/1.1 201 Created\r\ncontent-length: 9\r\n\r\n{"],
)
def test_a_connection_lost_after_the_request_raises_outcome_unknown(
    partial_answer: bytes,
) -> None:
    with (
        server(lambda connection: connection.sendall(partial_answer)) as address,
        pytest.raises(OutcomeUnknown),
    ):
        create(address)


def test_a_timeout_of_the_answer_raises_outcome_unknown() -> None:
    def wait_for_the_end(connection: socket.socket) -> None:
        while connection.recv(65_536):
            pass

    with server(wait_for_the_end) as address, pytest.raises(OutcomeUnknown, match="ReadTimeout"):
        create(address, timeout_seconds=0.2)


def test_a_closed_port_raises_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"
    with pytest.raises(Unreachable):
        create(address)


def test_a_server_without_tls_receives_no_byte_of_the_request() -> None:
    with (
        server(lambda connection: connection.sendall(b"HTTP/1.1 400 No\r\n\r\n")) as address,
        pytest.raises(Unreachable),
    ):
        create(address, scheme="https")
