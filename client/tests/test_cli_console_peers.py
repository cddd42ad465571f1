"""The user of a connection, by the socket tables of Linux."""

import os
import sys
from pathlib import Path

import pytest

from duewheel.cli.console import peers

HEADING = (
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout"
)
HEADING += " inode"
ROW = "  50: {} {} 01 00000000:00000000 00:00000000 00000000 {} 0 {} 2 00000000ae596e64 20 0"
PEER, OWN = ("127.0.0.1", 0xBB60), ("127.0.0.1", 0xA9E3)
THERE, HERE = "0100007F:BB60", "0100007F:A9E3"
ANOTHER = os.getuid() + 1

pytestmark = pytest.mark.skipif(sys.byteorder == "big", reason="the rows are of the other kind")


@pytest.mark.parametrize(
    ("row", "users"),
    [
        (ROW.format(THERE, HERE, 1000, 7), [1000]),
        (ROW.format(peers.MAPPED + THERE, peers.MAPPED + HERE, 1000, 7), [1000]),
        (ROW.format(THERE, HERE, 0, 0), []),  # closed by its user, held by the kernel
        (ROW.format(HERE, THERE, 0, 7), []),  # our own end
        (ROW.format("0200007F:BB60", HERE, 0, 7), []),
        (ROW.format(THERE, "0100007F:A9E4", 0, 7), []),
        (ROW.format("20010DB80000000000000000" + THERE, peers.MAPPED + HERE, 0, 7), []),
    ],
)
def test_the_user_of_the_other_end_is_found(row: str, users: list[int]) -> None:
    assert list(peers.users_of([HEADING, row], PEER, OWN)) == users


@pytest.mark.parametrize(
    ("user", "is_let_in"), [(os.getuid(), True), (0, True), (ANOTHER, False), (None, False)]
)
def test_only_the_user_and_root_are_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: int | None, is_let_in: bool
) -> None:
    rows = [HEADING] if user is None else [HEADING, ROW.format(THERE, HERE, user, 7)]
    (tmp_path / "tcp").write_text("\n".join(rows))
    monkeypatch.setattr(peers, "TABLES", (tmp_path / "tcp", tmp_path / "tcp6"))
    assert peers.may_be_ours(PEER, OWN) == is_let_in


def test_without_socket_tables_the_cookie_is_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "TABLES", (tmp_path / "none", tmp_path / "none"))
    assert peers.may_be_ours(PEER, OWN)
