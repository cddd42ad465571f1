"""Exceptions against the problem types that the service's source names."""

import ast
import pickle
from pathlib import Path

import httpx
import pytest

from duewheel import errors
from duewheel.errors import GatewayProblem, Problem, problem_from

CORE = Path(__file__).parents[2] / "layers/core/duewheel"
URN = "urn:duewheel:problem:"


def service_refusals() -> dict[str, str]:
    """Types by class name, without the base class, which is never raised."""
    found = {}
    for node in ast.parse((CORE / "rules/refusals.py").read_text()).body:
        if isinstance(node, ast.ClassDef):
            for line in node.body:
                match line:
                    case ast.Assign(
                        targets=[ast.Name(id="type")], value=ast.Constant(value=str(name))
                    ):
                        found[node.name] = name
    del found["Refusal"]
    return found


def failures_of_the_service() -> set[str]:
    """The problems that `interface/problems.py` makes without a refusal."""
    tree = ast.parse((CORE / "interface/problems.py").read_text())
    return {
        node.args[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "_failed"
        and isinstance(node.args[0], ast.Constant)
    }


def test_the_refusals_of_the_service_are_found() -> None:
    assert service_refusals()["UnknownTask"] == "unknown-task"
    assert failures_of_the_service() == {"misconfigured", "internal"}


@pytest.mark.parametrize(("class_name", "name"), service_refusals().items())
def test_each_refusal_of_the_service_has_an_exception_class_of_its_name(
    class_name: str, name: str
) -> None:
    problem = problem_from(422, {"type": URN + name})
    assert type(problem).__name__ == class_name


@pytest.mark.parametrize("name", sorted(failures_of_the_service()))
def test_each_failure_of_the_service_has_an_exception_class(name: str) -> None:
    assert type(problem_from(500, {"type": URN + name})) is not Problem


def test_a_problem_of_unknown_type_is_a_plain_problem() -> None:
    problem = problem_from(418, {"type": f"{URN}teapot", "title": "A pot", "detail": "Of tea."})
    assert type(problem) is Problem
    assert (problem.status, str(problem)) == (418, "A pot (418): Of tea.")


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (401, errors.NotAuthenticated),
        (403, errors.Forbidden),
        (404, errors.NoSuchPath),
        (413, errors.RequestTooLarge),
        (429, errors.TooManyRequests),
        (504, errors.NoAnswerInTime),
        (500, GatewayProblem),
        (502, GatewayProblem),
    ],
)
def test_errors_of_api_gateway_have_exception_classes(status: int, expected: type[Problem]) -> None:
    problem = problem_from(status, {"message": "Just so"})
    assert type(problem) is expected
    assert problem.detail == "Just so"
    assert type(problem_from(status, None)) is expected


def test_a_problem_keeps_its_members_when_it_is_pickled() -> None:
    members = {"type": f"{URN}too-late", "title": "Late", "detail": "So.", "cut_off": "2030"}
    problem = pickle.loads(pickle.dumps(problem_from(409, members)))
    assert isinstance(problem, errors.TooLate)
    assert problem.members["cut_off"] == "2030"
    assert problem.type == f"{URN}too-late"


def test_all_exceptions_have_one_base_class() -> None:
    assert issubclass(Problem, errors.DuewheelError)
    for name in ("Unreachable", "OutcomeUnknown", "UnexpectedAnswer"):
        assert issubclass(getattr(errors, name), errors.DuewheelError)
    assert not issubclass(errors.DuewheelError, httpx.HTTPError)
