"""Why a task waits, as a sentence."""

from duewheel.cli.shown import here
from duewheel.values import Waiting

_REASONS = {
    "paused": "its business or its flow key is paused",
    "rate": "its business has reached its calls a second",
    "concurrency": "its business has too many calls under way",
    "flow-key": "its flow key has reached a limit, or earlier tasks of it come first",
    "overlap": "an earlier run of its timer is pending",
    "open-breaker": "its host keeps failing and is not called",
    "slow-lane": "it waits for a notifier of the slow lane",
    "backlog": "it is in a backlog",
    "retry": "its last attempt failed",
    "unknown": "its reason could not be read",
    "calling": "a notifier has it, and calls it now",
    "running": "its receiver works on it",
}
_UNTIL = {"open-breaker": "probed from {} on", "running": "to report by {}"}
_STAGES = {
    "dispatch": "the scheduler has not come to its second",
    "notifier": "no notifier has begun its page",
    "place": "it got a place among others",
    "sweep": "its message was lost; the sweep sends it again",
}


def why(waiting: Waiting) -> str:
    """A reason of a newer service is shown as it is."""
    is_by_itself = waiting.reason == "paused" and waiting.until is not None
    words = ["it is paused" if is_by_itself else _REASONS.get(waiting.reason, waiting.reason)]
    if waiting.stage is not None:
        words.append(_STAGES.get(waiting.stage, waiting.stage))
    if waiting.host is not None:
        words.append(f"host {waiting.host}")
    if waiting.until is not None:
        until = here(waiting.until)
        words.append(_UNTIL.get(waiting.reason, "until {}").format(until))
    if waiting.since is not None:
        words.append(f"since {here(waiting.since)}")
    if waiting.expected_at is not None:
        words.append(f"next {here(waiting.expected_at)}")
    return ", ".join(words)
