"""What the document says of one call beyond its path, its right and what the page says of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from docs.openapi.schemas import TEXT, Schema, always, matching, ref
from duewheel.rules import preconditions
from duewheel.rules.preconditions import IF_MATCH, IF_NONE_MATCH
from duewheel.rules.refusals import Refusal
from duewheel.rules.tasks import idempotency
from duewheel.rules.tasks.idempotency import HEADER

Refusals = tuple[type[Refusal], ...]


@dataclass(frozen=True, slots=True)
class Parameter:
    """Of a query string, or a header."""

    name: str
    schema: Schema
    required: bool = False
    place: str = "query"
    description: str = ""


@dataclass(frozen=True, slots=True)
class Operation:
    """`answers`: the schema of each status of success. `refusals`: those of its own, beside what
    any call with a body, with parameters or with a right may meet."""

    name: str
    answers: Mapping[int, Schema]
    body: Schema | None = None
    body_required: bool = True
    parameters: tuple[Parameter, ...] = ()
    refusals: Refusals = ()
    headers: tuple[str, ...] = ()  # of the answer
    in_codes: bool = False  # it answers refusals by the codes of xTimer


Operations = dict[tuple[str, str], Operation]


@dataclass(frozen=True, slots=True)
class Kind:
    """The calls of one kind, and the schemas that they need."""

    tag: str
    description: str
    operations: Operations
    schemas: Mapping[str, Schema] = field(default_factory=dict)


def limit(default: int, largest: int, name: str = "limit") -> Parameter:
    schema = {"type": "integer", "minimum": 1, "maximum": largest, "default": default}
    return Parameter(name, schema)


CURSOR = Parameter("cursor", TEXT, description="What the page before answered.")
BIZ_TYPE = Parameter("biz_type", ref("BizType"), required=True)
IDEMPOTENCY_KEY = Parameter(
    HEADER.title(),
    matching(idempotency._VISIBLE_ASCII),
    place="header",
    description="A repeat with the same key and body gets what the first request came to.",
)
MATCH = Parameter(
    IF_MATCH.title(),
    {"type": "string", "pattern": rf"^(?:{preconditions._TAG.pattern}|\*)$"},
    place="header",
    description="A version in double quotes, as in `ETag` of an answer, or `*`.",
)
NONE_MATCH = Parameter(
    IF_NONE_MATCH.title(), always("*"), place="header", description="Only if it is not there yet."
)
