"""The input of `make deploy`: options of an environment, values of the parameters.

A value comes from samconfig.toml, from the untracked file `<stack>.parameters`, or from the command
line; the later one wins. Invariant: an unknown parameter, and a value that the template does not
accept, are refused here. The SAM CLI would silently ignore an unknown parameter.
"""

import re
import shlex
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any

FILE_SUFFIX = ".parameters"


class WrongParameters(Exception):
    """An unknown environment or parameter, or a value that it does not accept."""


def options_of(samconfig: str, environment: str) -> dict[str, Any]:
    """The options of the section that the SAM CLI reads, too."""
    configured = tomllib.loads(samconfig)
    known = [name for name in configured if name not in ("version", "default")]
    if environment not in known:
        raise WrongParameters(
            f"samconfig.toml has no environment {environment!r}: ENV is one of {', '.join(known)}."
        )
    options: dict[str, Any] = configured[environment]["deploy"]["parameters"]
    return options


def in_file(text: str) -> dict[str, str]:
    """`Name=value`, one a line; blank lines and those that begin with # are left out."""
    lines = [line.strip() for line in text.splitlines()]
    return _pairs(line for line in lines if line and not line.startswith("#"))


def in_command(text: str) -> dict[str, str]:
    """`Name=value Other="value with blanks"`, in the quotation of a shell."""
    return _pairs(shlex.split(text))


def chosen(
    options: Mapping[str, Any], file: str, command: str, declared: Mapping[str, Any]
) -> dict[str, str]:
    values = {
        **_pairs(options.get("parameter_overrides", [])),
        **in_file(file),
        **in_command(command),
    }
    wrong = [*_unknown(values, declared), *_not_taken(values, declared)]
    if wrong:
        raise WrongParameters("\n".join(wrong))
    return values


def effective(
    declared: Mapping[str, Any], previous: Mapping[str, str], values: Mapping[str, str]
) -> dict[str, str]:
    """The values of the stack after the deployment: a parameter that is not named keeps its
    value."""
    defaults = {name: str(one.get("Default", "")) for name, one in declared.items()}
    kept = {name: value for name, value in previous.items() if name in declared}
    return {**defaults, **kept, **values}


def as_arguments(values: Mapping[str, str]) -> list[str]:
    """Arguments of `--parameter-overrides`, which takes an empty value in quotation marks only."""
    return [f'{name}="{value}"' for name, value in values.items()]


def _pairs(lines: Iterable[str]) -> dict[str, str]:
    values: dict[str, str] = {}
    for line in lines:
        name, equals, value = line.partition("=")
        if not equals:
            raise WrongParameters(f"{line!r} is not of the form Name=value.")
        values[name.strip()] = value.strip()
    return values


def _unknown(values: Mapping[str, str], declared: Mapping[str, Any]) -> list[str]:
    return [
        f"The template has no parameter {name} (docs/reference.md lists them)."
        for name in values
        if name not in declared
    ]


def _not_taken(values: Mapping[str, str], declared: Mapping[str, Any]) -> list[str]:
    return [
        f"{name} does not take {value!r}: {_takes(declared[name])}"
        for name, value in values.items()
        if name in declared and not _is_taken(value, declared[name])
    ]


def _is_taken(value: str, parameter: Mapping[str, Any]) -> bool:
    if '"' in value or "\\" in value:  # no parameter needs them, and the SAM CLI would read them
        return False
    if "AllowedValues" in parameter:
        return value in map(str, parameter["AllowedValues"])
    if parameter["Type"] == "Number":
        is_number = re.fullmatch("[0-9]{1,12}", value) is not None
        return is_number and parameter["MinValue"] <= int(value) <= parameter["MaxValue"]
    return re.fullmatch(parameter["AllowedPattern"], value) is not None


def _takes(parameter: Mapping[str, Any]) -> str:
    if "AllowedValues" in parameter:
        return f"one of {', '.join(map(str, parameter['AllowedValues']))}."
    if parameter["Type"] == "Number":
        return f"a whole number from {parameter['MinValue']} to {parameter['MaxValue']}."
    return str(parameter.get("ConstraintDescription", parameter["Description"]))
