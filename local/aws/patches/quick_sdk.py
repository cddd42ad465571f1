"""Lets the SDK make its clients and requests without work that is not needed here.

Invariant: the same calls with the same answers. Omitted are signatures, which moto does not check,
the SDK's name for itself, connections and their proxies, which are not used, and random numbers of
calls, which would each need a call of the system. Done once for all clients are reading the
services' models and endpoints, making the clients' classes, and looking up the names of events. A
handler's arguments are read from its code.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from inspect import CO_VARKEYWORDS
from itertools import count
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch
from uuid import UUID

import boto3
from botocore import client, endpoint, hooks, httpsession, regions, session
from botocore.hooks import EventAliaser, NodeList
from botocore.signers import RequestSigner
from botocore.useragent import UserAgentString

# Its stubs leave them out.
_ClientCreator: Any = vars(client)["ClientCreator"]
_PrefixTrie: Any = vars(hooks)["_PrefixTrie"]
_any_provider: Any = vars(regions)["EndpointProvider"]

_session = cache(boto3.Session)
_loader = cache(session.create_loader)
_event_names: dict[str, str] = {}
_any_init = EventAliaser.__init__
_any_accepts_kwargs = hooks.accepts_kwargs
_any_class = _ClientCreator._create_client_class
_providers: dict[tuple[int, int], tuple[Any, Any, Any]] = {}
_classes: dict[str, type[Any]] = {}
_call_numbers = count(1)


@contextmanager
def sdk_without_idle_work() -> Iterator[None]:
    with ExitStack() as patched:
        for target, name, replacement in (
            # Each `mock_aws` has a session of its own, which would read all models again.
            (boto3, "DEFAULT_SESSION", _session()),
            (session, "create_loader", _loader),
            (UserAgentString, "to_string", lambda _: "emulated"),
            (RequestSigner, "sign", lambda *_, **__: None),
            (endpoint, "get_environ_proxies", lambda _: {}),
            (httpsession.URLLib3Session, "__init__", lambda *_, **__: None),
            (EventAliaser, "__init__", _with_known_names),
            (hooks, "accepts_kwargs", _accepts_kwargs),
            (_PrefixTrie, "_recursive_copy", _copied),
            (regions, "EndpointProvider", _provider),
            (_ClientCreator, "_create_client_class", _class),
            (endpoint, "uuid", SimpleNamespace(uuid4=lambda: UUID(int=next(_call_numbers)))),
        ):
            patched.enter_context(patch.object(target, name, replacement))
        yield


def _with_known_names(aliaser: Any, event_emitter: Any, aliases: Any = None) -> None:
    """Each client would compute the names of the events again, which all clients share."""
    _any_init(aliaser, event_emitter, aliases)
    aliaser._alias_name_cache = _event_names


def _accepts_kwargs(handler: Any) -> bool:
    code = getattr(handler, "__code__", None)
    if code is None:
        return bool(_any_accepts_kwargs(handler))
    return bool(code.co_flags & CO_VARKEYWORDS)


def _copied(trie: Any, node: dict[str, Any]) -> dict[str, Any]:
    """A node of a client's handlers has only these members; the SDK would check the type of
    each."""
    copied = {}
    for key, value in node.items():
        if type(value) is dict:
            value = _copied(trie, value)
        elif type(value) is NodeList:
            value = NodeList(*map(list, value))
        copied[key] = value
    return copied


def _provider(ruleset_data: Any, partition_data: Any, excluded_params: Any = None) -> Any:
    """Rules are read and never changed. Their source is kept, so that its id is not reused."""
    key = id(ruleset_data), id(partition_data)
    if key not in _providers:
        provider = _any_provider(ruleset_data, partition_data, excluded_params)
        _providers[key] = provider, ruleset_data, partition_data
    return _providers[key][0]


def _class(creator: Any, service_name: str, service_model: Any) -> type[Any]:
    if service_name not in _classes:
        _classes[service_name] = _any_class(creator, service_name, service_model)
    return _classes[service_name]
