"""The parts of the authorizer."""

from duewheel.wiring.api_keys import api_keys
from duewheel.wiring.process import clock, once
from duewheel.workflows.access.authenticate_key import Authorize


@once
def authorize() -> Authorize:
    return Authorize(clock(), api_keys())
