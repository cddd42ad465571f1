"""Each form in which Lambda accepts a function's name is read as the same function."""

import re

import botocore.session
from hypothesis import given
from hypothesis import strategies as st

from duewheel.rules.callbacks.allowed_targets import Scope
from duewheel.rules.callbacks.aws.function_names import FunctionName, function_name, is_plain
from tests.support.cases import each_case

HERE = Scope("aws", "eu-west-1", "123456789012")
OWN = FunctionName(partition="aws", region="eu-west-1", account="123456789012", name="close")
GOV = Scope("aws-us-gov", "us-gov-west-1", "123456789012")
ARN = "arn:aws:lambda:eu-west-1:123456789012:function:close"
CHINA = "arn:aws-cn:lambda:cn-north-1:210987654321:function:close:prod"
EUROPE = "arn:aws-eusc:lambda:eusc-de-east-1:210987654321:function:close"


@each_case(
    "text",
    [
        *("close", "function:close", "123456789012:close", "123456789012:function:close"),
        *("eu-west-1:123456789012:function:close", "eu-west-1:close", ARN),
    ],
)
def test_all_forms_name_one_function_with_or_without_a_qualifier(text: str) -> None:
    assert function_name(text, HERE) == OWN
    for qualifier in ("prod", "17", "$LATEST"):
        named = function_name(f"{text}:{qualifier}", HERE)
        assert named is not None
        assert (named.arn, named.function_arn) == (f"{ARN}:{qualifier}", ARN)


@each_case(
    ("text", "named"),
    [
        (
            CHINA,
            FunctionName(
                partition="aws-cn",
                region="cn-north-1",
                account="210987654321",
                name="close",
                qualifier="prod",
            ),
        ),
        (
            EUROPE,
            FunctionName(
                partition="aws-eusc", region="eusc-de-east-1", account="210987654321", name="close"
            ),
        ),
        (
            "210987654321:close",
            FunctionName(
                partition="aws-us-gov", region="us-gov-west-1", account="210987654321", name="close"
            ),
        ),
        (
            "us-iso-east-1:a",
            FunctionName(
                partition="aws-us-gov", region="us-iso-east-1", account="123456789012", name="a"
            ),
        ),
        (
            "function",
            FunctionName(
                partition="aws-us-gov",
                region="us-gov-west-1",
                account="123456789012",
                name="function",
            ),
        ),
        (
            "123456789012",
            FunctionName(
                partition="aws-us-gov",
                region="us-gov-west-1",
                account="123456789012",
                name="123456789012",
            ),
        ),
    ],
)
def test_partition_region_and_account_of_the_name_are_read(text: str, named: FunctionName) -> None:
    assert function_name(text, GOV) == named


@each_case(
    "text",
    [
        *("", ":", "close:", ":close", "close:prod:1", "a b", "close\n", "a" * 65, "close.js"),
        *("12345:function:close", "function:function:close:prod:2", "close:" + "a" * 129),
        *("arn:aws:lambda:close", "arn:aws:lambda:eu-west-1:function:close", ARN[:-5]),
        *("arn:aws:lambda:123456789012:function:close", "arn:aws:sqs:eu-west-1:123456789012:close"),
        *(ARN.replace("function", "layer"), ARN.replace("aws", ""), "Function:close:prod:x"),
    ],
)
def test_no_other_text_names_a_function(text: str) -> None:
    assert function_name(text, HERE) is None


def test_a_plain_name_has_no_part_of_an_arn_before_it() -> None:
    assert [text for text in ("close", "close:prod", "close:$LATEST") if not is_plain(text)] == []
    forms = ("function:close", "123456789012:close", "eu-west-1:close", ARN, "close.js")
    assert [text for text in forms if is_plain(text)] == []


PARTS = st.sampled_from(
    ["arn:aws:lambda:", "eu-west-1:", "123456789012:", "function:", "close", "function", ":prod"]
)


@given(st.lists(PARTS, max_size=6).map("".join))
def test_an_accepted_name_fits_the_pattern_of_the_sdk_and_equals_its_arn(text: str) -> None:
    model = botocore.session.get_session().get_service_model("lambda")
    shape = model.operation_model("Invoke").input_shape
    assert shape is not None
    pattern = shape.members["FunctionName"].metadata["pattern"]
    named = function_name(text, HERE)
    if named is not None:
        assert re.fullmatch(pattern, text)
        assert function_name(named.arn, GOV) == named
