"""Lets the SDK make its clients and requests without work that nobody looks at here.

Invariant: the same calls with the same answers. What is left out is signatures, which moto does not
check, and the SDK's name for itself; what is done once for all clients is reading the services'
models and looking up the names of events.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any
from unittest.mock import patch

from botocore import session
from botocore.hooks import EventAliaser
from botocore.signers import RequestSigner
from botocore.useragent import UserAgentString

_loader = cache(session.create_loader)
_event_names: dict[str, str] = {}
_any_init = EventAliaser.__init__


@contextmanager
def sdk_without_idle_work() -> Iterator[None]:
    with ExitStack() as patched:
        for target, name, replacement in (
            # Each `mock_aws` has a session of its own, which would read all models anew.
            (session, "create_loader", _loader),
            (UserAgentString, "to_string", lambda _: "emulated"),
            (RequestSigner, "sign", lambda *_, **__: None),
            (EventAliaser, "__init__", _with_known_names),
        ):
            patched.enter_context(patch.object(target, name, replacement))
        yield


def _with_known_names(aliaser: Any, event_emitter: Any, aliases: Any = None) -> None:
    """Each client would find out anew what the events are called that all clients have."""
    _any_init(aliaser, event_emitter, aliases)
    aliaser._alias_name_cache = _event_names
