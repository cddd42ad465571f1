"""Cached condition expressions give the same results as expressions that moto parses each time."""

from typing import Any

import pytest
from moto.dynamodb.comparisons import ConditionExpressionParser
from moto.dynamodb.models.dynamo_type import DynamoType, Item

from local.aws.patches.condition_expressions import conditions_read_once
from tests.support.cases import each_case

NAMES = {"#n": "n", "#t": "text", "#m": "map", "#l": "list", "#none": "none"}
VALUES: dict[str, Any] = {
    ":one": {"N": "1"},
    ":two": {"N": "2"},
    ":text": {"S": "new"},
    ":map": {"S": "M"},
    ":texts": {"SS": ["a", "b"]},
}
ITEMS: list[dict[str, Any] | None] = [
    None,
    {"h": {"S": "h"}, "n": {"N": "1"}, "text": {"S": "newer"}, "map": {"M": {"n": {"N": "2"}}}},
    {"h": {"S": "h"}, "n": {"N": "2"}, "text": {"S": "old"}, "list": {"L": [{"N": "1"}]}},
]
CONDITIONS = [
    "",
    "attribute_not_exists(h)",
    "attribute_exists(#n) AND #n = :one",
    "#n = :one AND #t <> :text OR attribute_not_exists(#none)",
    "(attribute_not_exists(#none) OR #none = :text) AND NOT #n > :one",
    "#n BETWEEN :one AND :two AND begins_with(#t, :text)",
    "#n IN (:one, :two) AND contains(#t, :text)",
    "#m.#n >= :two OR #l[0] <= :one",
    "size(#t) > :two AND attribute_type(#m, :map)",
    "h <= :text AND n < :two",
    # Refused conditions
    "#n = :missing",
    "#missing = :one",
    "#n == :one",
    "#n = :one AND",
    "((#n = :one))",
    "name = :one",
    "#n = :one :two",
    "#n.:one = :one",
    "unknown(#n)",
]
SETS_OF_VALUES = [VALUES, {**VALUES, ":one": {"N": "2"}, ":text": {"S": "old"}}, None]


def item_of(attributes: dict[str, Any] | None) -> Item | None:
    if attributes is None:
        return None
    return Item(DynamoType(attributes["h"]), None, attributes)


def outcome(condition: str, names: dict[str, str] | None, values: Any) -> list[Any]:
    """Its result for each item, and its placeholders; or its refusal."""
    parser = ConditionExpressionParser(condition, names, values)
    try:
        holds = parser.parse()
        results = [bool(holds.expr(item_of(item))) for item in ITEMS]
    except Exception as refusal:  # noqa: BLE001
        return [type(refusal), str(refusal)]
    return [results, parser.expr_attr_names_found, parser.expr_attr_values_found]


@each_case("condition", CONDITIONS)
def test_conditions_give_the_results_of_the_unpatched_parser(condition: str) -> None:
    """Names and values differ each time, so those of the cached tree must not be used."""
    asked = [
        (condition, names, values)
        for values in SETS_OF_VALUES
        for names in (NAMES, {**NAMES, "#n": "map"}, None)
    ]
    unpatched = [outcome(*one) for one in asked]
    with conditions_read_once():
        assert [outcome(*one) for one in asked] == unpatched
        assert [outcome(*one) for one in asked] == unpatched


def test_a_condition_is_parsed_once() -> None:
    text = "attribute_not_exists(#never_read) OR #never_read = :before"
    lexed: list[str] = []
    lex = ConditionExpressionParser._lex_condition_expression

    def counted(parser: ConditionExpressionParser) -> Any:
        lexed.append(str(parser.condition_expression))
        return lex(parser)

    with pytest.MonkeyPatch.context() as patched, conditions_read_once():
        patched.setattr(ConditionExpressionParser, "_lex_condition_expression", counted)
        for number in range(3):
            values = {":before": {"N": str(number)}}
            ConditionExpressionParser(text, {"#never_read": "n"}, values).parse()
    assert lexed == [text]
