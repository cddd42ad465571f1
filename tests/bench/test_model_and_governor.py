"""The model of the cloud held against the real handlers, on a table that takes too little.

The governor counts what moto is asked for, on virtual time; the model what its stories ask for.
"""

import pytest

from bench.cloud.assumed import Knobs
from bench.cloud.experiment import burst, run
from tests.simulation.crowd import Crowd, crowded

TASKS, WRITE_UNITS = 400, 40


@pytest.mark.soak
def test_the_model_and_the_governed_handlers_agree() -> None:
    """Ten seconds' worth of a table, so that settling is refused again and again."""
    came = crowded(Crowd(TASKS, WRITE_UNITS, in_seconds=60))
    model = run(Knobs(table_write_units=WRITE_UNITS, is_warm=True), burst(TASKS))

    assert came.statuses == {"delivered": TASKS}
    assert set(came.calls.values()) == {1}
    assert came.inconsistent == []
    assert (model.settled, model.repeated) == (TASKS, 0)
    least_seconds = TASKS / WRITE_UNITS - 1  # a second's worth is there at once
    assert least_seconds <= came.settled_seconds <= 1.25 * TASKS / WRITE_UNITS
    assert model.settled_after_ms / 1000 == pytest.approx(came.settled_seconds, rel=0.1)
    assert model.written == pytest.approx(came.units_to_deliver, rel=0.05)
    assert model.writes == pytest.approx(came.writes_to_deliver, rel=0.2)
