"""Every app has its own business, and every business has an app."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duewheel.rules.names import BIZ_TYPE
from duewheel.rules.refusals import InvalidField
from duewheel.xtimer.app_names import app_of, biz_type_of
from tests.support.cases import each_case

LETTERS = st.characters(exclude_categories=["Cs"])
APPS = (st.text(LETTERS, min_size=1, max_size=20) | st.text("aA._-x0 é订", min_size=1)).filter(
    lambda app: len(app.encode()) <= 20  # three characters for a byte, and the mark
)


@each_case(
    ("app", "biz_type"),
    [
        ("orders", "orders"),
        ("order_service.v2-eu", "order_service.v2-eu"),
        ("OrderService", "x._4frder_53ervice"),
        ("order_Service", "x.order_5f_53ervice"),
        ("订单", "x._e8_ae_a2_e5_8d_95"),
        ("-orders", "x.-orders"),
        ("x.orders", "x.x.orders"),
        ("x.", "x.x."),
        (" ", "x._20"),
    ],
)
def test_an_app_is_the_business_of_its_name_or_of_its_encoded_name(app: str, biz_type: str) -> None:
    assert biz_type_of(app) == biz_type
    assert app_of(biz_type) == app


@given(APPS)
def test_an_app_is_decoded_from_its_business(app: str) -> None:
    biz_type = biz_type_of(app)
    assert BIZ_TYPE.fullmatch(biz_type)
    assert app_of(biz_type) == app


@given(
    st.from_regex(BIZ_TYPE, fullmatch=True) | st.from_regex(r"x\.[a-z0-9._-]{0,8}", fullmatch=True)
)
def test_every_business_has_the_name_of_an_app(biz_type: str) -> None:
    app = app_of(biz_type)
    assert app == biz_type or biz_type_of(app) == biz_type


@each_case("app", ["a" * 64, "A" * 21, "订" * 7])
def test_an_app_whose_business_would_be_too_long_is_refused(app: str) -> None:
    with pytest.raises(InvalidField):
        biz_type_of(app)
