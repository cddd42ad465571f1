"""The calls on the service as a whole: the overview, the wheel, the audit, health, and the API
document."""

from collections.abc import Mapping
from pathlib import Path

from duewheel import __version__
from duewheel.interface.http import (
    Answer,
    Call,
    Request,
    for_all_callers,
    json_answer,
    reads,
    reads_all,
)
from duewheel.interface.sweep.overview_view import OverviewView, overview_view
from duewheel.interface.wheel.wheel_view import (
    AuditView,
    HealthView,
    WheelView,
    audit_view,
    wheel_view,
)
from duewheel.rules.query_string import PageQuery, read_query
from duewheel.rules.sweep.audit import AuditQuery, audit_request
from duewheel.wiring import api as wiring
from duewheel.wiring import process

API_DOCUMENT = Path(__file__).parents[1] / "interface/openapi.json"


def read_wheel(_: Request) -> Answer:
    return json_answer(wheel_view(wiring.read_wheel()()))


def read_overview(request: Request) -> Answer:
    query = read_query(request.query, PageQuery)
    return json_answer(overview_view(wiring.read_overview()(query, request.access)))


def audit(request: Request) -> Answer:
    query = audit_request(request.query, process.clock().now_ms())
    return json_answer(audit_view(wiring.audit()(query)))


def read_health(_: Request) -> Answer:
    process.settings()  # raises if the deployment is configured wrongly
    return json_answer(HealthView("ok", __version__))


def read_api_document(_: Request) -> Answer:
    return Answer(200, API_DOCUMENT.read_text("utf-8"))


CALLS: dict[str, Mapping[str, Call]] = {
    "/v1/overview": {"GET": reads(read_overview, OverviewView, query=PageQuery)},
    "/v1/wheel": {"GET": reads_all(read_wheel, WheelView)},
    "/v1/audit": {"GET": reads_all(audit, AuditView, query=AuditQuery)},
    "/v1/health": {"GET": for_all_callers(read_health, HealthView)},
    "/v1/openapi.json": {"GET": for_all_callers(read_api_document)},
}
