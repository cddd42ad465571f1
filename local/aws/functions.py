"""The template's functions, loaded from the files that are packaged.

Invariant: a handler gets the same as in Lambda: its event, a context, and the environment of the
template.
"""

import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Protocol
from unittest.mock import patch

from local.aws.calling_function import as_function
from local.aws.intrinsics import TemplateError
from local.aws.policies import Role
from local.aws.resources import Resources

# One process runs all functions, so its environment cannot have values that differ between them.
MAY_DIFFER = {"POWERTOOLS_SERVICE_NAME"}

Handler = Callable[[Any, Any], Any]


class Died(BaseException):
    """The process crashed; no code in it may catch this."""


class HasNow(Protocol):
    def now_ms(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Context:
    """The context that Lambda passes to a handler."""

    function_name: str
    memory_limit_in_mb: int
    invoked_function_arn: str
    get_remaining_time_in_millis: Callable[[], int]
    function_version: str = "$LATEST"
    aws_request_id: str = field(default_factory=lambda: str(uuid.uuid4()))

    @property
    def log_group_name(self) -> str:
        return f"/aws/lambda/{self.function_name}"

    @property
    def log_stream_name(self) -> str:
        return f"local/[{self.function_version}]"


@dataclass(frozen=True, slots=True)
class Function:
    folder: str  # the one in `functions/` that has its code
    name: str
    arn: str
    timeout_ms: int
    memory_mb: int
    handler: Handler

    def invoke(
        self, event: Any, remaining_ms: Callable[[], int], request_id: str | None = None
    ) -> Any:
        context = Context(self.name, self.memory_mb, self.arn, remaining_ms)
        if request_id is not None:
            context = replace(context, aws_request_id=request_id)
        try:
            return self.handler(event, context)
        except Died as died:
            raise RuntimeError(f"{self.name} {died}") from died

    def invoke_with_timeout(self, event: Any, clock: HasNow, request_id: str | None = None) -> Any:
        deadline_ms = clock.now_ms() + self.timeout_ms
        return self.invoke(event, lambda: max(0, deadline_ms - clock.now_ms()), request_id)


def one_at_a_time(function: Function, turn: AbstractContextManager[object]) -> Function:
    """The function, with runs that wait for their turn."""

    def handler(event: Any, context: Any) -> Any:
        with turn:
            return function.handler(event, context)

    return replace(function, handler=handler)


def load_functions(resources: Resources, roles: Mapping[str, Role]) -> dict[str, Function]:
    """The functions by the ARNs of their aliases: unpublished functions are not invoked.

    Their environment must be set before (see `environment_of_all`).
    """
    functions = {}
    for alias in resources.template.of_type("AWS::Lambda::Alias"):
        resource = resources.template.resources[alias.properties["FunctionName"]["Ref"]]
        properties = resources.resolve(resource.properties)
        folder = resources.template.code_folders[resource.logical_id]
        arn = resources.ref(alias.logical_id)
        functions[arn] = Function(
            folder=folder.name,
            name=resources.ref(resource.logical_id),
            arn=arn,
            timeout_ms=int(properties.get("Timeout", 3)) * 1000,
            memory_mb=int(properties.get("MemorySize", 128)),
            handler=as_function(roles[folder.name], _load_handler(folder, properties["Handler"])),
        )
    return functions


@contextmanager
def environment_of_all(resources: Resources) -> Iterator[None]:
    """The functions' variables in this process, until the block is left."""
    variables: dict[str, str] = {}
    for resource in resources.template.functions():
        folder = resources.template.code_folders[resource.logical_id]
        _merge(variables, resources.environment(folder.name), resource.logical_id)
    with patch.dict(os.environ, variables):
        yield


def _merge(variables: dict[str, str], own: Mapping[str, str], function: str) -> None:
    for name, value in own.items():
        if variables.setdefault(name, value) != value and name not in MAY_DIFFER:
            raise TemplateError(
                f"{function} has another {name} than the functions before it; "
                "on one machine they share one environment"
            )


def _load_handler(folder: Path, handler: str) -> Handler:
    module_name, _, function_name = handler.rpartition(".")
    path = folder / f"{module_name}.py"
    spec = spec_from_file_location(f"functions.{folder.name}.{module_name}", path)
    if spec is None or spec.loader is None or not path.exists():
        raise TemplateError(f"there is no {path}")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    loaded: Handler = getattr(module, function_name)
    return loaded
