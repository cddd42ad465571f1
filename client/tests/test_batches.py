"""The batches of a stream of tasks."""

from collections.abc import Iterator

from duewheel import NewTask
from duewheel._sync.creating import texts_of
from duewheel.batches import BYTES_MAX, ESCAPED_BYTES_MAX, batch_bytes, batches


def task(payload: object = None) -> NewTask:
    return NewTask(biz_type="orders", delay=1, payload=payload)


def test_a_batch_has_at_most_500_tasks() -> None:
    assert [len(batch) for batch in batches([task()] * 1001)] == [500, 500, 1]
    assert list(batches([])) == []


def test_a_batch_is_filled_up_to_four_megabytes() -> None:
    tasks = [task("é" * 30_000)] * 140
    cut = list(batches(tasks))
    assert sum(len(batch) for batch in cut) == 140
    sizes = [len(batch_bytes(texts_of(batch))) for batch in cut]
    assert max(sizes) <= BYTES_MAX
    assert sizes[0] + len(batch_bytes(texts_of(tasks[:1]))) > BYTES_MAX


def test_quotation_marks_count_with_the_escapes_of_api_gateway() -> None:
    tasks = [task('"' * 15_000)] * 200
    cut = list(batches(tasks))
    for batch in cut:
        content = batch_bytes(texts_of(batch))
        assert len(content) + content.count(b'"') + content.count(b"\\") <= ESCAPED_BYTES_MAX
    assert len(cut) > 1


def test_a_task_too_large_for_any_request_gets_a_batch_of_its_own() -> None:
    tasks = [task(1), task("x" * BYTES_MAX), task(2)]
    assert [len(batch) for batch in batches(tasks)] == [1, 1, 1]


def test_a_stream_is_read_no_further_than_the_batch_being_filled() -> None:
    read: list[int] = []

    def stream() -> Iterator[NewTask]:
        for number in range(2000):
            read.append(number)
            yield task(number)

    next(batches(stream()))
    assert len(read) == 501
