"""Prices of other services for a call at an instant, and their limits.

Prices come from prices.json; each says what is included. None has a cost while idle.
"""

from dataclasses import dataclass

from bench.cost.bill import price

CALLBACK_GB_SECONDS = 0.1 * 128 / 1024  # a function of 128 MB that waits 100 ms for the receiver


@dataclass(frozen=True)
class Competitor:
    name: str
    per_million: float  # US dollars
    included: str
    limits: str


def competitors() -> tuple[Competitor, ...]:
    a_function = price("lambda_requests_million")
    a_function += CALLBACK_GB_SECONDS * price("lambda_arm_gb_seconds_million")
    transitions = price("step_functions_transitions_million")
    return (
        Competitor(
            "EventBridge Scheduler",
            price("eventbridge_scheduler_invocations_million") + a_function,
            "one invocation, and a function of 128 MB that makes the HTTP call in 100 ms",
            "within the minute, not the second; 1,000 invocations and 5,000 creates a second, "
            "both adjustable; one schedule a request",
        ),
        Competitor(
            "EventBridge Scheduler, without HTTP",
            price("eventbridge_scheduler_invocations_million"),
            "one invocation, which puts a message into a queue or runs a function of yours; "
            "what receives it left out",
            "the same",
        ),
        Competitor(
            "Step Functions, standard",
            3 * transitions,
            "three transitions: start, wait, call; the call itself left out",
            "a year ahead; a cancel stops one execution at a time",
        ),
        Competitor(
            "Cloud Tasks",
            2 * price("cloud_tasks_operations_million"),
            "two operations: create and dispatch",
            "30 days ahead; 500 dispatches a second of a queue; no batches over the public API",
        ),
        Competitor(
            "QStash, as you go",
            price("qstash_messages_million"),
            "one message; retries free",
            "a year ahead; 100 calls at a time; plans of 180 and 420 dollars a month for one "
            "and ten million messages a day",
        ),
    )
