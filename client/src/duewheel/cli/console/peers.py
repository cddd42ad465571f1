"""The user of a connection, from the kernel, on Linux.

A browser sends a cookie of 127.0.0.1 to each port of it, also to another user's. A user who has
read it there is refused by this check.
"""

import os
import socket
import struct
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
MAPPED = "0000000000000000FFFF0000"  # an IPv4 address as IPv6 has it
LOCAL, REMOTE, UID, INODE = 1, 2, 7, 9
ROOT = 0  # may do all that we may; a host that runs this machine comes in by its processes
Address = tuple[str, int]


def may_be_ours(peer: Address, own: Address) -> bool:
    """No, where the connection is known to be another user's, or has been let go by its user."""
    if not TABLES[0].exists():
        return True
    rows = chain.from_iterable(table.read_text().splitlines() for table in TABLES if table.exists())
    return any(user in (os.getuid(), ROOT) for user in users_of(rows, peer, own))


def users_of(rows: Iterable[str], peer: Address, own: Address) -> Iterator[int]:
    """One at most. A socket that was let go has no inode, and a user who is not its own."""
    ends = [(prefix + _written(peer), prefix + _written(own)) for prefix in ("", MAPPED)]
    for row in rows:
        cells = row.split()
        if (cells[LOCAL], cells[REMOTE]) in ends and cells[INODE] != "0":
            yield int(cells[UID])


def _written(address: Address) -> str:
    host, port = address
    (number,) = struct.unpack("=I", socket.inet_aton(host))
    return f"{number:08X}:{port:04X}"
