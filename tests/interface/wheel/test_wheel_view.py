from msgspec import to_builtins

from duewheel.interface.wheel.wheel_view import OPEN_PLACES_SHOWN, wheel_view
from duewheel.rules.wheel.open_places import OpenPlace, Why
from duewheel.rules.wheel.sharding import MinuteLoad
from duewheel.workflows.wheel.read_status import WheelState

NOW_MS = 1_900_000_000_250
SECOND = NOW_MS // 1000


def test_the_wheel_shows_its_pointers_and_the_oldest_of_its_open_places() -> None:
    page = OpenPlace(
        second=SECOND - 300, shard=3, page="2r", since_ms=NOW_MS - 170_250, why=Why.HELD
    )
    whole = [
        OpenPlace(second=SECOND - 200 + n, shard=0, since_ms=NOW_MS - n, why=Why.FAILED)
        for n in range(OPEN_PLACES_SHOWN)
    ]
    state = WheelState(
        now_ms=NOW_MS,
        buckets=1_000,
        origin_second=SECOND - 900,
        time_pointer=SECOND + 1,
        sweep_pointer=SECOND - 130,
        open_places=(*whole, page),
        leader="leader-1",
        forecast=[],
    )
    view = to_builtins(wheel_view(state))
    shown = view["open_places"].pop("places")
    assert view == {
        "now": "2030-03-17T17:46:40.250Z",
        "buckets": 1_000,
        "origin": "2030-03-17T17:31:40.000Z",
        "time_pointer": {
            "at": "2030-03-17T17:46:41.000Z",
            "second": SECOND + 1,
            "lag_seconds": 0,
        },
        "sweep_pointer": {
            "at": "2030-03-17T17:44:30.000Z",
            "second": SECOND - 130,
            "lag_seconds": 130,
        },
        "open_places": {"count": OPEN_PLACES_SHOWN + 1, "oldest_age_seconds": 170},
        "leader": "leader-1",
        "forecast": {"tasks": 0, "minutes": []},
    }
    assert len(shown) == OPEN_PLACES_SHOWN
    assert shown[0] == {
        "at": "2030-03-17T17:41:40.000Z",
        "second": SECOND - 300,
        "shard": 3,
        "page": "2r",
        "since": "2030-03-17T17:43:50.000Z",
        "why": "held",
    }
    assert (shown[1]["page"], shown[1]["why"]) == (None, "failed")
    none = to_builtins(wheel_view(WheelState(**{**to_builtins(state), "open_places": ()})))
    assert none["open_places"] == {"count": 0, "oldest_age_seconds": None, "places": []}


def test_the_forecast_leaves_out_what_single_samples_make() -> None:
    minute = NOW_MS // 60_000 + 1
    samples = MinuteLoad(minute, {0: 64.0, 30: 64.0})
    steady = MinuteLoad(minute + 1, dict.fromkeys(range(50), 64.0))
    crowd = MinuteLoad(minute + 2, {0: 640.0, 30: 64.0})
    state = WheelState(
        now_ms=NOW_MS,
        buckets=1_000,
        origin_second=SECOND,
        time_pointer=SECOND,
        sweep_pointer=SECOND,
        open_places=(),
        leader=None,
        forecast=[samples, steady, crowd],
    )
    forecast = wheel_view(state).forecast
    assert forecast.tasks == 3_904
    assert [(each.tasks, each.seconds) for each in forecast.minutes] == [
        (3_200, {}),
        (704, {"0": 640}),
    ]
