"""A deployment's lists of targets never cover more than IAM would."""

import pytest

from duewheel.rules.callbacks.allowed_targets import AllowedTargets, Scope, check_patterns
from tests.support.cases import each_case

FUNCTION = "arn:aws:lambda:eu-central-1:123456789012:function:orders"


@each_case(
    "pattern",
    [
        FUNCTION,
        "arn:aws:lambda:eu-central-1:123456789012:function:*",
        "arn:aws:lambda:eu-central-1:123456789012:function:ord?rs",
        "arn:aws:lambda:*:*:function:orders",
        "arn:aws:lambda:eu-*:12345678901?:function:o*s",
    ],
)
def test_a_resource_is_covered_by_its_arn_or_a_wildcard(pattern: str) -> None:
    assert AllowedTargets(arns=("arn:aws:lambda:eu-central-1:1:function:a", pattern)).cover(
        FUNCTION
    )


@each_case(
    ("arn", "pattern"),
    [
        (FUNCTION, "arn:aws:lambda:eu-central-1:123456789012:function:order"),
        (FUNCTION, "arn:aws:lambda:eu-central-1:123456789012:function:Orders"),
        (FUNCTION, "arn:aws:lambda:eu-central-1:123456789012:function:orders?"),
        (FUNCTION, "arn:aws:lambda:us-east-1:*:function:*"),
        (FUNCTION, "arn:aws:sqs:*:*:*"),
        (FUNCTION, "arn:aws:lambda:*:function:orders:x"),
        (f"{FUNCTION}:prod", FUNCTION),
        (f"{FUNCTION}.x", f"{FUNCTION}[.]x"),
    ],
)
def test_an_arn_that_iam_would_refuse_is_not_covered(arn: str, pattern: str) -> None:
    assert not AllowedTargets(arns=(pattern,)).cover(arn)


def test_a_wildcard_stays_within_its_segment_except_in_the_resource() -> None:
    assert AllowedTargets(arns=(f"{FUNCTION}:*",)).cover(f"{FUNCTION}:prod")
    assert AllowedTargets(arns=("arn:aws:lambda:*:*:function:ord*",)).cover(f"{FUNCTION}:prod")
    assert not AllowedTargets(arns=("arn:*:123456789012:x:y:function:orders",)).cover(FUNCTION)


def test_an_empty_list_covers_nothing() -> None:
    assert not AllowedTargets(arns=()).cover(FUNCTION)


def test_the_id_of_a_stack_contains_partition_region_and_account() -> None:
    scope = Scope.of_stack("arn:aws-cn:cloudformation:cn-north-1:123456789012:stack/a/b")
    assert scope.arn("sqs", "q") == "arn:aws-cn:sqs:cn-north-1:123456789012:q"
    with pytest.raises(ValueError, match="no stack's id"):
        Scope.of_stack("a/b")


def test_a_pattern_that_is_not_an_arn_is_refused() -> None:
    check_patterns((FUNCTION,))
    with pytest.raises(ValueError, match="no ARN"):
        check_patterns((FUNCTION, "orders-*"))
