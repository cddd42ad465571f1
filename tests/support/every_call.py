"""The calls of the api function, those of xTimer's clients among them."""

from duewheel.interface.http import Calls
from duewheel.xtimer import calls as xtimer
from functions.api.app import CALLS

EVERY_CALL = Calls({**CALLS.by_path, **xtimer.CALLS.by_path})
