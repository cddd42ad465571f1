"""Lambda's execution environments: which of them a run gets, and what becomes of it afterwards.

As in AWS an environment is frozen the moment its handler returns or raises, threads and all. The
next run that gets it thaws it, however much later; some never come back.
"""

from collections import defaultdict
from collections.abc import Callable

from tests.simulation.faults import Faults
from tests.simulation.invocation import FROZEN, Environment, Invocation

FROZEN_SECONDS = (0.0, 0.0, 1.0, 20.0, 90.0, 300.0)  # at least


class Environments:
    def __init__(self, faults: Faults, seconds: Callable[[], float]) -> None:
        self._faults = faults
        self._seconds = seconds
        self.left_at_work: list[str] = []
        self._idle: dict[str, list[Environment]] = defaultdict(list)

    def taken(self, function: str, deadline_seconds: float) -> Environment:
        """The one that was left last, of those that Lambda hands out again."""
        idle = self._idle[function]
        for environment in reversed(idle):
            if environment.available_seconds <= self._seconds():
                idle.remove(environment)
                environment.thaw(deadline_seconds)
                return environment
        return Environment(function, deadline_seconds)

    def left(self, environment: Environment, run: Invocation) -> None:
        if environment.is_dead:
            return
        environment.freeze()
        if environment.threads_at_work:
            run.troubles.append(FROZEN)
            self._faults.injected[FROZEN] += 1
            threads = f"{environment.threads_at_work} threads"
            self.left_at_work.append(f"{run.function} {run.number} with {threads} at work")
        if self._faults.happens(self._faults.rates.retired):
            return
        if environment.threads_at_work or self._faults.happens(self._faults.rates.freeze):
            held_seconds = self._faults.chance.choice(FROZEN_SECONDS)
            environment.available_seconds = self._seconds() + held_seconds
        self._idle[environment.function].append(environment)
