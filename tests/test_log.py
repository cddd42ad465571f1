"""A record has the ids of its run, and no information that the log group's name already has."""

import json
import logging
from collections.abc import Callable, Iterator
from io import StringIO
from typing import Any

import pytest

from duewheel.log import logger, logs_run
from tests.functions.conftest import Context

Written = Callable[[Any], dict[str, Any]]
TRACE = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"


@pytest.fixture
def record_of(monkeypatch: pytest.MonkeyPatch) -> Iterator[Written]:
    """A record of a run with this event."""
    level = logger.log_level
    logger.setLevel(logging.INFO)
    monkeypatch.setenv("_X_AMZN_TRACE_ID", TRACE)

    def written(event: Any) -> dict[str, Any]:
        stream = StringIO()
        monkeypatch.setattr(logger.registered_handler, "stream", stream)
        logs_run(lambda *_: logger.info("done", action="change"))(event, CONTEXT)
        record: dict[str, Any] = json.loads(stream.getvalue())
        assert isinstance(record.pop("timestamp"), str)
        return record

    yield written
    logger.setLevel(level)


CONTEXT = Context()
RECORD = {"level": "INFO", "message": "done", "action": "change"}


def test_a_record_has_the_id_of_its_run(record_of: Written) -> None:
    assert record_of({}) == {**RECORD, "function_request_id": CONTEXT.aws_request_id}


def test_a_record_of_a_request_has_the_id_of_the_access_log_for_that_request_only(
    record_of: Written,
) -> None:
    request = {"requestContext": {"requestId": "UXlZLjKQoAMEPnw="}}
    assert record_of(request) == {**RECORD, "correlation_id": "UXlZLjKQoAMEPnw="}
    assert "correlation_id" not in record_of({})
