"""How long a call may take: by the callback, or the setting of its business, up to the bound."""

from msgspec.structs import replace

from duewheel.rules.businesses.settings import Business, Defaults, Own
from duewheel.rules.callbacks.aws.lambda_function import LambdaCallback
from duewheel.rules.callbacks.types import AwsCallback, Callback, HttpCallback
from duewheel.rules.tasks.effective_callback import timeout_ms
from tests.rules.tasks.test_lifecycle import TASK
from tests.support.cases import each_case

DEFAULTS = Defaults(retention_days=30, timeout_seconds=10, timeout_seconds_max=30)
NONE = HttpCallback("https://a.example")
FIVE = HttpCallback("https://a.example", timeout_seconds=5)
TWENTY = HttpCallback("https://b.example", timeout_seconds=20)
FUNCTION = LambdaCallback("f", timeout_seconds=7.0004)
PLAIN_FUNCTION: AwsCallback = LambdaCallback("f")


@each_case(
    ("own", "usual", "setting", "expected_ms"),
    [
        (None, NONE, None, 10_000),
        (None, NONE, 2.5, 2_500),
        (None, TWENTY, 2.5, 20_000),
        (FIVE, NONE, 2.5, 5_000),
        (FIVE, TWENTY, 2.5, 5_000),
        (NONE, TWENTY, 2.5, 20_000),  # completed by the callback of its business
        (HttpCallback(method=""), TWENTY, 2.5, 20_000),
        (PLAIN_FUNCTION, TWENTY, 2.5, 2_500),  # which takes nothing from it
        (NONE, FUNCTION, 2.5, 2_500),
        (None, FUNCTION, 2.5, 7_001),  # rounded up
        (FUNCTION, None, None, 7_001),
        (None, None, 2.5, 2_500),
        (replace(FIVE, timeout_seconds=45), None, None, 30_000),  # the bound is stricter now
        (None, None, 45.0, 30_000),
    ],
)
def test_the_timeout_of_the_callback_comes_before_the_setting(
    own: Callback | None, usual: Callback | None, setting: float | None, expected_ms: int
) -> None:
    business = Business("orders", DEFAULTS, Own(callback=usual, timeout_seconds=setting))
    assert timeout_ms(replace(TASK, callback=own), business) == expected_ms


def test_a_notice_has_the_timeout_of_its_own_callback_and_none_of_that_of_the_tasks() -> None:
    business = Business("orders", DEFAULTS, Own(callback=TWENTY))
    notice = replace(TASK, notice_of="another", callback=FIVE)
    assert timeout_ms(notice, business) == 5_000
    assert timeout_ms(replace(notice, callback=NONE), business) == 10_000
