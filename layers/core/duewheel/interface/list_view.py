"""A page of a list in an answer: the tasks, and the cursor of the next page or null."""

from collections.abc import Iterable

from duewheel.interface.answer import compact
from duewheel.interface.task_view import task_text
from duewheel.rules.task import Task


def page_text(tasks: Iterable[Task], cursor: str | None) -> str:
    return '{"tasks":[' + ",".join(map(task_text, tasks)) + f'],"cursor":{compact(cursor)}}}'
