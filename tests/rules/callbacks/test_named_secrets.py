"""References to named secrets in headers."""

import pytest

from duewheel.rules.businesses.requests import business_change
from duewheel.rules.businesses.settings import Defaults
from duewheel.rules.callbacks.requests import checked_headers
from duewheel.rules.callbacks.secret_headers import (
    NamedSecret,
    filled,
    merged,
    names_in,
    shown_value,
)
from duewheel.rules.callbacks.types import HttpCallback
from duewheel.rules.refusals import InvalidField
from tests.support.cases import each_case

DEFAULTS = Defaults(30, 10.0, 30.0)
LONG = "a" * 33


@each_case(
    ("value", "wanted"),
    [
        ("{{secret:token}}", "TOKEN"),
        ("Bearer {{secret:token}}", "Bearer TOKEN"),
        ("session={{secret:a.b_c-1}}", "session=ABC"),
    ],
)
def test_a_reference_is_accepted_shown_unchanged_and_filled_in(value: str, wanted: str) -> None:
    headers = checked_headers([("authorization", value), ("x-team", "billing")], "headers")
    callback = HttpCallback(headers=headers)
    assert names_in(callback) < {"token", "a.b_c-1"}
    assert shown_value("authorization", value) == value
    whole = filled(callback, {"token": "TOKEN", "a.b_c-1": "ABC"})
    assert whole.headers == (("authorization", wanted), ("x-team", "billing"))


@each_case(
    ("name", "value"),
    [
        *(
            ("cookie", text)
            for text in ("{{secret:}}", "{{secret:A}}", "{{secret:a}} b", "{{secret:a")
        ),
        *(("cookie", text) for text in ("{{secret:a}}{{secret:b}}", LONG + "{{secret:a}}")),
        ("x-team", "{{secret:a}}"),  # a receiver that repeats the header would reveal the secret
    ],
)
def test_another_use_of_a_reference_is_refused(name: str, value: str) -> None:
    with pytest.raises(InvalidField, match="secret"):
        checked_headers([(name, value)], "headers")


@each_case(
    "secrets",
    [
        *('{"A": "b"}', '{"": "b"}', '["a"]', '{"a": ""}', '{"a": " b"}', '{"a": "b\\n"}'),
        *('{"a": "ü"}', '{"a": 1}', '{"a": "%s"}' % ("b" * 1_025)),
    ],
)
def test_a_value_that_is_invalid_in_a_header_is_refused_without_showing_it(secrets: str) -> None:
    with pytest.raises(InvalidField) as refused:
        business_change(f'{{"secrets": {secrets}}}', DEFAULTS)
    assert str(refused.value.field).startswith("secrets")
    assert "bb" not in refused.value.detail


def test_a_change_sets_replaces_and_removes_secrets_by_name() -> None:
    first, second = NamedSecret("a", "1"), NamedSecret("b", "2")
    assert merged((first,), {"b": second}) == (first, second)
    assert merged((first, second), {"a": NamedSecret("a", "3")}) == (
        NamedSecret("a", "3"),
        second,
    )
    assert merged((first, second), {"a": None, "c": None}) == (second,)
    assert merged((first,), {"a": None}) is None
