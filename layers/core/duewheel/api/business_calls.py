"""The calls on businesses: their settings, their dead tasks, their statistics."""

from collections.abc import Mapping
from typing import Any

from duewheel.interface.businesses.business_view import (
    BusinessesView,
    BusinessView,
    business_answer,
    read_answer,
    seen_view,
)
from duewheel.interface.history.changes_view import ChangesView, changes_view
from duewheel.interface.http import (
    Answer,
    Call,
    Request,
    administers,
    encoded,
    json_answer,
    reads,
    writes,
)
from duewheel.interface.sweep.stats_view import StatisticsView, stats_view
from duewheel.interface.tasks.task_view import (
    TasksView,
    page_text,
)
from duewheel.rules import refusals
from duewheel.rules.businesses.requests import (
    BusinessChangeBody,
    DeleteQuery,
    ProbeBody,
    business_change,
)
from duewheel.rules.businesses.settings import Business
from duewheel.rules.fields import decode
from duewheel.rules.names import checked_biz_type
from duewheel.rules.preconditions import IF_MATCH, IF_NONE_MATCH
from duewheel.rules.query_string import PageQuery, read_query
from duewheel.rules.sweep.minute_statistics import StatsQuery, stats_request
from duewheel.rules.tasks.dead_tasks import (
    DeadQuery,
    dead_request,
)
from duewheel.rules.tasks.requests import SINGLE_BYTES_MAX
from duewheel.wiring import api as wiring
from duewheel.wiring import process
from duewheel.workflows.sweep.delete_business import BusinessDeletion


def list_businesses(request: Request) -> Answer:
    page = wiring.read_businesses().page(read_query(request.query, PageQuery), request.access)
    now_ms = process.clock().now_ms()
    views = [seen_view(seen, now_ms) for seen in page.businesses]
    return json_answer(BusinessesView(views, page.cursor))


def read_business(_: Request, biz_type: str) -> Answer:
    found = wiring.read_businesses().one(checked_biz_type(biz_type))
    return read_answer(found, process.clock().now_ms())


def configure_business(request: Request, biz_type: str) -> Answer:
    checked, body = checked_biz_type(biz_type), request.text(SINGLE_BYTES_MAX)
    change = business_change(body, process.settings().business_defaults, wiring.allowed_targets())
    business = wiring.configure_business()(checked, change, request.precondition, by=request.caller)
    return _with_health(business, 201 if business.is_new else 200)


def pause_business(request: Request, biz_type: str) -> Answer:
    return _paused(request, biz_type, paused=True)


def resume_business(request: Request, biz_type: str) -> Answer:
    return _paused(request, biz_type, paused=False)


def _paused(request: Request, biz_type: str, *, paused: bool) -> Answer:
    pause = wiring.configure_business().pause
    checked, precondition = checked_biz_type(biz_type), request.precondition
    return _with_health(pause(checked, precondition, paused=paused, by=request.caller))


def probe_host(request: Request, biz_type: str) -> Answer:
    checked, body = checked_biz_type(biz_type), decode(request.text(SINGLE_BYTES_MAX), ProbeBody)
    wiring.probe_host()(checked, body.host)
    return read_business(request, biz_type)


def _with_health(business: Business, status: int = 200) -> Answer:
    (shown,) = wiring.read_businesses().with_health([business])
    return business_answer(shown, process.clock().now_ms(), status)


def delete_business(request: Request, biz_type: str) -> Answer:
    query = read_query(request.query, DeleteQuery)
    delete = wiring.delete_business()
    checked, precondition = checked_biz_type(biz_type), request.precondition
    deleted = delete(checked, query, precondition, by=request.caller)
    return Answer(200 if deleted.done else 202, encoded(deleted))


def list_business_changes(_: Request, biz_type: str) -> Answer:
    kept = wiring.read_changes().of_business(checked_biz_type(biz_type))
    return json_answer(changes_view(kept))


def list_dead_tasks(request: Request, biz_type: str) -> Answer:
    query = dead_request(request.query)
    page = wiring.dead_tasks().page(checked_biz_type(biz_type), query)
    return Answer(200, page_text(page.tasks, page.cursor))


def read_statistics(request: Request, biz_type: str) -> Answer:
    query = stats_request(request.query, process.clock().now_ms())
    checked = checked_biz_type(biz_type)
    return json_answer(stats_view(checked, wiring.read_statistics()(checked, query)))


_SWITCHES: dict[str, Any] = {"takes": (IF_MATCH, IF_NONE_MATCH), "gives": ("ETag",)}

CALLS: dict[str, Mapping[str, Call]] = {
    "/v1/businesses": {"GET": reads(list_businesses, BusinessesView, query=PageQuery)},
    "/v1/businesses/{biz_type}": {
        "GET": reads(read_business, BusinessView, refusals.UnknownBusiness, gives=("ETag",)),
        "PUT": administers(
            configure_business,
            BusinessView,
            refusals.TargetNotEnabled,
            refusals.VersionMismatch,
            body=BusinessChangeBody,
            statuses=(200, 201),
            **_SWITCHES,
        ),
        "DELETE": administers(
            delete_business,
            BusinessDeletion,
            refusals.HasTimers,
            refusals.TasksPending,
            refusals.ListIndexOff,
            refusals.UnknownBusiness,
            refusals.VersionMismatch,
            query=DeleteQuery,
            statuses=(200, 202),
            takes=(IF_MATCH,),
        ),
    },
    "/v1/businesses/{biz_type}/pause": {
        "POST": administers(pause_business, BusinessView, refusals.VersionMismatch, **_SWITCHES)
    },
    "/v1/businesses/{biz_type}/resume": {
        "POST": administers(resume_business, BusinessView, refusals.VersionMismatch, **_SWITCHES)
    },
    "/v1/businesses/{biz_type}/probe": {"POST": writes(probe_host, BusinessView, body=ProbeBody)},
    "/v1/businesses/{biz_type}/changes": {
        "GET": reads(list_business_changes, ChangesView, refusals.UnknownBusiness)
    },
    "/v1/businesses/{biz_type}/dead": {"GET": reads(list_dead_tasks, TasksView, query=DeadQuery)},
    "/v1/businesses/{biz_type}/stats": {
        "GET": reads(read_statistics, StatisticsView, query=StatsQuery)
    },
}
