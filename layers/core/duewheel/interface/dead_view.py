"""What a page of redrives came to: how many were, and which were not, each with its problem."""

from duewheel.interface.problems import problem_of
from duewheel.workflows.dead_tasks import Redriven


def redriven_view(redriven: Redriven) -> dict[str, object]:
    return {
        "redriven": redriven.redriven,
        "refused": [
            {"task_id": task_id, "problem": problem_of(refusal)}
            for task_id, refusal in redriven.refused
        ],
        "cursor": redriven.cursor,
    }
