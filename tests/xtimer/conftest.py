"""The calls are made as those of `/v1` are."""

from tests.functions.conftest import wired

__all__ = ["wired"]  # a fixture
