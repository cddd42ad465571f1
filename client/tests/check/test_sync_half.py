"""The generated sync half matches its async source. It needs ruff, so `make check` runs it."""

from make_sync import WORDS, stale


def test_sync_half_is_generated_from_the_async_half() -> None:
    assert stale() == [], "run client/make_sync.py"
    assert WORDS
