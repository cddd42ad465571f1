"""The user of a connection, from the kernel, on Linux.

A browser sends a cookie of 127.0.0.1 to each of its ports, also to a server of another user, who
can thus read it. This check refuses the requests of that user.
"""

import os
import socket
import struct
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
MAPPED = "0000000000000000FFFF0000"  # prefix of an IPv4 address in IPv6
LOCAL, REMOTE, UID, INODE = 1, 2, 7, 9
ROOT = 0  # has all our rights anyway; the host of a virtual machine connects by processes of root
Address = tuple[str, int]


def may_be_ours(peer: Address, own: Address) -> bool:
    """False if the connection is known to belong to another user, or if its user has closed it."""
    if not TABLES[0].exists():
        return True
    rows = chain.from_iterable(table.read_text().splitlines() for table in TABLES if table.exists())
    return any(user in (os.getuid(), ROOT) for user in users_of(rows, peer, own))


def users_of(rows: Iterable[str], peer: Address, own: Address) -> Iterator[int]:
    """At most one user. A closed socket has no inode, and its user is not the one who opened it."""
    ends = [(prefix + _written(peer), prefix + _written(own)) for prefix in ("", MAPPED)]
    for row in rows:
        cells = row.split()
        if (cells[LOCAL], cells[REMOTE]) in ends and cells[INODE] != "0":
            yield int(cells[UID])


def _written(address: Address) -> str:
    host, port = address
    (number,) = struct.unpack("=I", socket.inet_aton(host))
    return f"{number:08X}:{port:04X}"
