"""The caller and its access, from the context that API Gateway sends."""

from typing import Any

from duewheel.rules.access.grants import ALL, ANONYMOUS, ANYTHING, AuthMode, Callers, Grant, Right
from tests.support.cases import each_case

NOW_MS = 1_800_000_000_000
ACCOUNT = "123456789012"
READ, WRITE, ADMIN = Right
KEY = {"key_id": "abc", "grants": "write:orders-*,read:*", "expires_ms": "", "version": "1"}


def by_iam(arn: Any, iam_default: Right | None = None, account: str = ACCOUNT) -> Any:
    callers = Callers(AuthMode.IAM, account, iam_default)
    return callers.access({"iam": {"userArn": arn}}, NOW_MS)


def by_key(context: Any) -> Any:
    return Callers(AuthMode.KEYS, ACCOUNT, ADMIN).access({"lambda": context}, NOW_MS)


def role(name: str) -> str:
    return f"arn:aws:sts::{ACCOUNT}:assumed-role/{name}/session"


@each_case(
    ("name", "grant"),
    [
        ("duewheel-read", Grant(READ, ALL)),
        ("duewheel-admin", Grant(ADMIN, ALL)),
        ("duewheel-write-orders", Grant(WRITE, "orders")),
        ("duewheel-read-orders-+", Grant(READ, "orders-*")),
        ("duewheel-admin-+", Grant(ADMIN, ALL)),
        ("duewheel-write-read-orders", Grant(WRITE, "read-orders")),
    ],
)
def test_the_name_of_a_role_or_user_sets_its_permissions(name: str, grant: Grant) -> None:
    for arn in (role(name), f"arn:aws:iam::{ACCOUNT}:user/team/a/{name}"):
        for iam_default in (ADMIN, None):
            assert by_iam(arn, iam_default).grants == (grant,)


@each_case(
    ("permission_set", "grants"),
    [
        ("duewheel-admin", (Grant(ADMIN, ALL),)),
        ("duewheel-read-orders_eu", (Grant(READ, "orders_eu"),)),
        ("duewheel-read-Orders", ()),
        ("AdministratorAccess", (Grant(WRITE, ALL),)),
    ],
)
def test_a_role_of_identity_center_has_the_permissions_of_its_permission_set(
    permission_set: str, grants: tuple[Grant, ...]
) -> None:
    name = f"AWSReservedSSO_{permission_set}_0123456789abcdef"
    assert by_iam(role(name), WRITE).grants == grants
    user = f"arn:aws:iam::{ACCOUNT}:user/{name}"
    assert by_iam(user, None).grants == (), "AWS reserves names of roles alone"


@each_case(
    "name",
    [
        "duewheel-read-",
        "duewheel-read-Orders",
        "duewheel-write-a+b",
        "duewheel-admin-++",
        "duewheel-readonly",
        "duewheel-read_orders",
        "duewheel-read+",
        "Duewheel-Read-orders",
        "duewheel-READ",
    ],
)
def test_a_misspelt_bounding_name_has_no_permissions(name: str) -> None:
    assert by_iam(role(name), ADMIN).grants == ()


@each_case("name", ["orders", "duewheel", "duewheel-orders", "x-duewheel-read"])
@each_case("iam_default", [*Right, None])
def test_any_other_name_has_the_default_permissions(name: str, iam_default: Right | None) -> None:
    expected = () if iam_default is None else (Grant(iam_default, ALL),)
    assert by_iam(role(name), iam_default).grants == expected


def test_the_name_of_a_session_federated_user_or_path_sets_no_permissions() -> None:
    for arn in (
        f"arn:aws:sts::{ACCOUNT}:assumed-role/orders/duewheel-admin",
        f"arn:aws:sts::{ACCOUNT}:federated-user/duewheel-admin",
        f"arn:aws:iam::{ACCOUNT}:user/duewheel-admin/orders",
        f"arn:aws:iam::{ACCOUNT}:root",
    ):
        assert by_iam(arn).grants == ()


@each_case("who", ["sts::{}:federated-user/x", "iam::{}:root"])
def test_a_caller_that_is_neither_role_nor_user_has_no_default_permissions(who: str) -> None:
    """A user with a bounding name could create a federated user, whose name does not bound."""
    assert by_iam(f"arn:aws:{who.format(ACCOUNT)}", ADMIN).grants == ()


def test_all_sessions_of_a_role_are_one_caller() -> None:
    assert by_iam(role("orders")).caller == f"arn:aws:sts::{ACCOUNT}:assumed-role/orders"
    user = f"arn:aws:iam::{ACCOUNT}:user/team/ada"
    assert by_iam(user).caller == user


@each_case(
    "arn", [role("duewheel-admin").replace("12", "21"), "", None, 7, {}, "arn:aws:iam::root", "x\n"]
)
def test_an_identity_of_another_account_or_without_account_is_anonymous(arn: Any) -> None:
    assert by_iam(arn, ADMIN) is ANONYMOUS


@each_case("mode", [AuthMode.IAM, AuthMode.KEYS])
@each_case("authorizer", [{}, {"iam": None}, {"lambda": None}, {"jwt": {"sub": "a"}}])
def test_a_caller_without_an_identity_of_the_mode_is_anonymous(
    mode: AuthMode, authorizer: dict[str, Any]
) -> None:
    assert Callers(mode, ACCOUNT, ADMIN).access(authorizer, NOW_MS) is ANONYMOUS


def test_an_identity_of_the_other_mode_is_ignored() -> None:
    iam, key = {"iam": {"userArn": role("duewheel-admin")}}, {"lambda": KEY}
    assert Callers(AuthMode.KEYS, ACCOUNT, ADMIN).access(iam, NOW_MS) is ANONYMOUS
    assert Callers(AuthMode.IAM, ACCOUNT, ADMIN).access(key, NOW_MS) is ANONYMOUS


def test_a_key_has_the_grants_that_the_authorizer_found() -> None:
    access = by_key(KEY)
    assert access.caller == "key/abc"
    assert access.grants == (Grant(WRITE, "orders-*"), Grant(READ, ALL))


def test_a_key_that_expired_after_the_authorizer_cached_it_is_anonymous() -> None:
    assert by_key({**KEY, "expires_ms": str(NOW_MS + 1)}).grants
    assert by_key({**KEY, "expires_ms": str(NOW_MS)}) is ANONYMOUS


@each_case(
    "context",
    [
        {},
        "key",
        [],
        {**KEY, "grants": ""},
        {**KEY, "grants": None},
        {**KEY, "grants": "own:*"},
        {**KEY, "expires_ms": "soon"},
        {"key_id": "abc", "grants": "read:*"},
    ],
)
def test_an_invalid_authorizer_context_is_anonymous(context: Any) -> None:
    assert by_key(context) is ANONYMOUS


def test_a_stack_without_authorisation_permits_every_call() -> None:
    callers = Callers(AuthMode.OFF, ACCOUNT, None)
    assert callers.access({"iam": {"userArn": role("duewheel-read")}}, NOW_MS) is ANYTHING.access


@each_case("mode", [AuthMode.IAM, AuthMode.KEYS])
def test_a_caller_without_any_identity_has_no_permissions(mode: AuthMode) -> None:
    """This holds while a route has no authorizer, during a change from one mode to the other."""
    assert Callers(mode, ACCOUNT, ADMIN).access({}, NOW_MS) == ANONYMOUS
