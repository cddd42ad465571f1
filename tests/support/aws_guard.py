"""Checks the calls of every AWS client of this process, and refuses requests that AWS would refuse.

moto accepts requests that AWS does not carry out. Invariant: no such request reaches moto
unnoticed. It fails where it is made and, in case the code under test catches that, again when the
test ends. The rules are those of AWS's documentation; the contents of the tables are not checked.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from botocore.client import BaseClient

from tests.support.message_rules import MESSAGE_CHECKS
from tests.support.queue_rules import check_invocation, check_queue_call
from tests.support.refused import RefusedByAws
from tests.support.table_rules import Tables

Check = Callable[[str, Mapping[str, Any]], None]


class AwsGuard:
    def __init__(self) -> None:
        self.refused: list[str] = []
        self.calls = 0  # since this process began
        self._checks: dict[str, Check] = {
            "dynamodb": Tables().check,
            "sqs": check_queue_call,
            "lambda": check_invocation,
            **MESSAGE_CHECKS,
        }

    def check(self, service: str, operation: str, request: Mapping[str, Any]) -> None:
        check = self._checks.get(service)
        if check is None:
            return
        try:
            check(operation, request)
        except RefusedByAws as refusal:
            self.refused.append(f"AWS refuses this {operation}: {refusal}")
            raise RefusedByAws(self.refused[-1]) from None

    def guard_all_clients(self) -> None:
        """Patch the class of all clients permanently, since all of their calls use this method."""
        call: Callable[..., Any] = BaseClient._make_api_call

        def guarded(client: Any, operation: str, request: Mapping[str, Any]) -> Any:
            self.calls += 1
            self.check(client.meta.service_model.service_name, operation, request)
            return call(client, operation, request)

        BaseClient._make_api_call = guarded

    @contextmanager
    def lowered(self) -> Iterator[None]:
        """Disable the guard, for tests of moto itself with requests that AWS refuses."""
        checks, self._checks = self._checks, {}
        try:
            yield
        finally:
            self._checks = checks

    def taken(self) -> list[str]:
        """The refusals since the last call of this method."""
        taken, self.refused = self.refused, []
        return taken
