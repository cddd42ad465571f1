"""The half that is made against the one that it is made of. It takes ruff, so `make check` asks."""

from make_sync import WORDS, stale


def test_the_sync_half_is_what_the_async_half_makes_of_it() -> None:
    assert stale() == [], "run client/make_sync.py"
    assert WORDS
