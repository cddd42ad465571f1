"""The calls on the wheel as a whole, and the one that answers this document."""

from docs.openapi.operation import CURSOR, Kind, Operation, Parameter
from docs.openapi.schemas import (
    COUNT,
    INSTANT,
    TEXT,
    Schema,
    always,
    described,
    names_to,
    nullable,
    one_of,
    ref,
    shown,
    some,
    whole,
)
from duewheel.interface.wheel.wheel_view import OPEN_PLACES_SHOWN
from duewheel.rules.sweep.audit import Wrong
from duewheel.rules.wheel.open_places import OPEN_PLACES_MAX, Why
from duewheel.rules.wheel.profile import PROFILES

_SCHEMAS: dict[str, Schema] = {
    "Pointer": shown({"at": INSTANT, "second": COUNT, "lag_seconds": COUNT}),
    "OpenPlace": shown(
        {
            "at": described(INSTANT, "The second."),
            "second": COUNT,
            "shard": COUNT,
            "page": described(nullable(TEXT), "The first page that is not finished, if it is one."),
            "since": described(INSTANT, "When the sweep left the place open."),
            "why": described(one_of(Why), "docs/api.md says what each word means."),
        }
    ),
    "OpenPlaces": described(
        shown(
            {
                "count": whole(0, OPEN_PLACES_MAX),
                "oldest_age_seconds": nullable(COUNT),
                "places": described(
                    some(ref("OpenPlace"), largest=OPEN_PLACES_SHOWN), "The oldest come first."
                ),
            }
        ),
        "What the sweep could not finish, and looks at again in each run.",
    ),
    "Wheel": shown(
        {
            "now": INSTANT,
            "profile": one_of(PROFILES),
            "buckets": COUNT,
            "origin": INSTANT,
            "time_pointer": ref("Pointer"),
            "sweep_pointer": ref("Pointer"),
            "open_places": ref("OpenPlaces"),
            "leader": nullable(TEXT),
            "forecast": shown(
                {
                    "tasks": COUNT,
                    "minutes": some(
                        shown(
                            {
                                "at": INSTANT,
                                "tasks": COUNT,
                                "seconds": described(
                                    names_to(COUNT), "By the second of the minute."
                                ),
                            }
                        )
                    ),
                }
            ),
        }
    ),
    "Finding": shown(
        {
            "wrong": one_of(Wrong),
            "detail": TEXT,
            "task_id": nullable(TEXT),
            "biz_type": nullable(TEXT),
            "at": nullable(TEXT),
            "attribute": nullable(TEXT),
        }
    ),
    "Audit": shown(
        {
            "from": INSTANT,
            "to": INSTANT,
            "audited_until": INSTANT,
            "checked": shown({"seconds": COUNT, "items": COUNT}),
            "findings": some(ref("Finding")),
            "cursor": nullable(TEXT),
        }
    ),
    "Health": shown({"status": always("ok"), "version": TEXT}),
}

WHEEL = Kind(
    "wheel",
    "Where it stands, what is wrong with it, whether it is well.",
    {
        ("GET", "/v1/wheel"): Operation("read_wheel", {200: ref("Wheel")}),
        ("GET", "/v1/audit"): Operation(
            "audit",
            {200: ref("Audit")},
            parameters=(
                Parameter("from", INSTANT, description="Inclusive."),
                Parameter("to", INSTANT, description="Exclusive."),
                CURSOR,
            ),
        ),
        ("GET", "/v1/health"): Operation("read_health", {200: ref("Health")}),
        ("GET", "/v1/openapi.json"): Operation("read_api_document", {200: {"type": "object"}}),
    },
    _SCHEMAS,
)
