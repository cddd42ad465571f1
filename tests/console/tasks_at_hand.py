"""Tasks for the tests of the pages that show them, and helpers that open these pages."""

from typing import Any

from tests.console.viewer import Viewer
from tests.support.service import Service

MARKUP = "<img src=x onerror=alert(1)>"


def created(service: Service, business: str, seconds: float = 600, **more: Any) -> dict[str, Any]:
    return service.create(business, biz_type=business, delay_seconds=seconds, **more)


def batch(service: Service, business: str, many: int) -> None:
    """Create tasks under the keys `k-000` and so on."""
    tasks = [
        service.new_task(business, biz_type=business, delay_seconds=60 + n, key=f"k-{n:03d}")
        for n in range(many)
    ]
    status, answer = service.call("POST", "/v1/tasks/batch", {"tasks": tasks})
    assert {result["status"] for result in answer["results"]} == {201}, (status, answer)


def dead_task(service: Service, business: str) -> dict[str, Any]:
    service.call("PUT", f"/_local/received/{business}", {"status": 410, "times": 1})
    task = created(service, business, 1)
    service.advance(3)
    return task


def open_task(viewer: Viewer, task: dict[str, Any]) -> None:
    viewer.open(f"tasks/{task['task_id']}")
