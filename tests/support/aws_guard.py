"""Stands before every AWS client of this process and refuses what AWS would refuse.

moto accepts requests that AWS does not carry out. Invariant: no such request reaches it unseen.
It fails where it is made, and, should the code under test catch that, once more when the test
ends. Only what the documentation of AWS refuses is refused; what lies in the tables is not known.
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

    def stand_before_all_clients(self) -> None:
        """Once, for good: each client's calls go through this method of its class."""
        call: Callable[..., Any] = BaseClient._make_api_call

        def guarded(client: Any, operation: str, request: Mapping[str, Any]) -> Any:
            self.calls += 1
            self.check(client.meta.service_model.service_name, operation, request)
            return call(client, operation, request)

        BaseClient._make_api_call = guarded

    @contextmanager
    def lowered(self) -> Iterator[None]:
        """For tests of what moto itself does with what AWS refuses."""
        checks, self._checks = self._checks, {}
        try:
            yield
        finally:
            self._checks = checks

    def taken(self) -> list[str]:
        """What was refused since this was last asked."""
        taken, self.refused = self.refused, []
        return taken
