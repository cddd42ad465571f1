"""Names of Lambda functions, in every form that Lambda accepts. Each text means one function.

Lambda takes a name, a partial ARN and an ARN, each with a version or an alias behind it. It reads
`function:close` and `123456789012:close` as partial ARNs, not as names with an alias. Validation,
the list of allowed targets and the check for the deployment's own functions all use the result of
this module, and Lambda gets an unambiguous form.
"""

import re

from msgspec import Struct

from duewheel.rules.callbacks.allowed_targets import Scope

FUNCTION_CHARACTERS_MAX = 256

# The SDK's own pattern of a FunctionName, with the lengths of a name, a version and an alias.
_FORM = re.compile(
    r"(?!arn:aws[a-zA-Z-]*:lambda:(?![^:]+:[0-9]{12}:function:))"
    r"(?P<arn>arn:(?P<partition>aws[a-zA-Z-]*):lambda:)?"
    r"(?:(?P<region>(?:eusc-)?[a-z]{2}(?:-gov|-iso[a-z]?)?-[a-z]+-[0-9]):)?"
    r"(?:(?P<account>[0-9]{12}):)?"
    r"(?P<kind>function:)?"
    r"(?P<name>[A-Za-z0-9_-]{1,64})"
    r"(?::(?P<qualifier>\$LATEST(?:\.PUBLISHED)?|[A-Za-z0-9_-]{1,128}))?"
)


FUNCTION = re.sub(r"\?P<\w+>", "?:", f"^{_FORM.pattern}$")  # of the API document


class FunctionName(Struct, frozen=True, kw_only=True):
    """`qualifier`: a version or an alias."""

    partition: str
    region: str
    account: str
    name: str
    qualifier: str | None = None

    @property
    def function_arn(self) -> str:
        """Without version or alias."""
        return f"arn:{self.partition}:lambda:{self.region}:{self.account}:function:{self.name}"

    @property
    def arn(self) -> str:
        return self.function_arn + (f":{self.qualifier}" if self.qualifier else "")


def function_name(text: str, scope: Scope) -> FunctionName | None:
    """The function that Lambda would call for this text; None if it is no name of a function."""
    found = _FORM.fullmatch(text)
    if found is None or len(text) > FUNCTION_CHARACTERS_MAX:
        return None
    return FunctionName(
        partition=found["partition"] or scope.partition,
        region=found["region"] or scope.region,
        account=found["account"] or scope.account,
        name=found["name"],
        qualifier=found["qualifier"],
    )


def is_plain(text: str) -> bool:
    """Whether this is a name, with or without a version or an alias, and no partial ARN."""
    found = _FORM.fullmatch(text)
    return found is not None and not (found["region"] or found["account"] or found["kind"])
