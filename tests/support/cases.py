"""A table of pure cases as one test, since pytest's overhead for a test is larger than such a
case."""

from collections.abc import Callable, Iterable
from functools import wraps
from inspect import signature
from typing import Any

import pytest

Test = Callable[..., None]


def each_case(names: str | tuple[str, ...], cases: Iterable[Any]) -> Callable[[Test], Test]:
    """Like `parametrize`, for cases without side effects. Each failure names its case."""
    fields = [name.strip() for name in names.split(",")] if isinstance(names, str) else [*names]
    table = [case if len(fields) > 1 else (case,) for case in cases]
    assert table

    def tried(test: Test) -> Test:
        @wraps(test)
        def all_cases(**fixtures: Any) -> None:
            failures: list[BaseException] = []
            for case in table:
                try:
                    test(**dict(zip(fields, case, strict=True)), **fixtures)
                except (Exception, pytest.fail.Exception) as failure:  # noqa: BLE001
                    failure.add_note(f"Case: {case!r}")
                    failures.append(failure)
            if len(failures) == 1:
                raise failures[0]
            if failures:
                raise BaseExceptionGroup(f"{len(failures)} of {len(table)} cases", failures)

        declared = signature(test)
        others = [one for name, one in declared.parameters.items() if name not in fields]
        all_cases.__signature__ = declared.replace(parameters=others)  # type: ignore[attr-defined]
        return all_cases

    return tried
