"""The settings of the deployment, from the environment. One error names all wrong settings."""

from collections.abc import Callable, Mapping

from msgspec import Struct

from duewheel.rules.access.grants import IAM_DEFAULTS, AuthMode, Right, check_businesses
from duewheel.rules.businesses.settings import Defaults
from duewheel.rules.callbacks.allowed_targets import AllowedTargets, Scope, check_patterns
from duewheel.rules.callbacks.egress import allowed_networks
from duewheel.rules.delivery.page_lease import LEASE_MS
from duewheel.rules.wheel.timing import DIRECT_LATE_MS

LIVE = "live"  # the alias by which every function is invoked, as the template names it
GONE_MARGIN_SECONDS = 15  # after this time no request of an ended Lambda is in flight
SWEEP_MARGIN_SECONDS = 30
SETTLED_RETENTION_DAYS_DEFAULT = 30
CALLBACK_TIMEOUT_SECONDS = 10  # unless the callback or its business has another
_CALLS_PER_RUN = 2  # one after the other, of the longest, in the notifier's timeout


class SettingsError(Exception):
    """The deployment is configured wrongly; nothing runs until it is corrected."""


class Settings(Struct, frozen=True, kw_only=True):
    wheel_table: str
    registry_table: str
    secrets_table: str
    slice_queue_url: str
    slow_queue_url: str
    notifier_function: str
    bulk_function: str = ""  # of the functions that invoke it
    stack_id: str
    buckets: int = 10_000_000
    lead_ms: int = 500
    page_size: int = 100
    retention_days: int = SETTLED_RETENTION_DAYS_DEFAULT
    sweep_delay_seconds: int = 120
    notifier_timeout_seconds: int = 60
    list_index: bool = True
    metrics: bool = True
    auth_mode: AuthMode = AuthMode.IAM
    iam_default: Right | None = None
    allowed_private_cidrs: tuple[str, ...] = ()
    target_arns: tuple[str, ...] = ()
    own_names: tuple[str, ...] = ()
    ingest_queue_url: str = ""
    ingest_dead_letter_queue_url: str = ""
    ingest_businesses: tuple[str, ...] = ()
    stack_timers_as: str = ""  # the caller of the function for timers of stacks

    @property
    def page_lease_ms(self) -> int:
        return LEASE_MS

    @property
    def notifier_lives_ms(self) -> int:
        """No run of the notifier is at work for longer."""
        return (self.notifier_timeout_seconds + GONE_MARGIN_SECONDS) * 1000

    @property
    def stack_name(self) -> str:
        return self.stack_id.split("/")[1]

    @property
    def allowed_targets(self) -> AllowedTargets:
        return AllowedTargets(
            Scope.of_stack(self.stack_id),
            self.target_arns,
            self.own_names,
            self.business_defaults.timeout_seconds_max,
        )

    @property
    def retention_seconds(self) -> int:
        return self.retention_days * 86_400

    @property
    def business_defaults(self) -> Defaults:
        return Defaults(
            self.retention_days,
            CALLBACK_TIMEOUT_SECONDS,
            self.notifier_timeout_seconds // _CALLS_PER_RUN,
        )


_NUMBERS = {
    # environment variable: (field, smallest, largest)
    "BUCKETS": ("buckets", 1, 1_000_000_000),
    "LEAD_MS": ("lead_ms", 0, 2_000),
    "PAGE_SIZE": ("page_size", 1, 100),
    "RETENTION_DAYS": ("retention_days", 1, 3_650),
    "SWEEP_DELAY_SECONDS": ("sweep_delay_seconds", 1, 3_600),
    "NOTIFIER_TIMEOUT_SECONDS": ("notifier_timeout_seconds", 30, 900),
}


_CHOICES: dict[str, tuple[str, Mapping[str, object]]] = {
    # environment variable, and its field in capitals: what it is by default, and may be
    "LIST_INDEX": ("on", {"on": True, "off": False}),
    "METRICS": ("on", {"on": True, "off": False}),
    "AUTH_MODE": (AuthMode.IAM, {mode.value: mode for mode in AuthMode}),
    "IAM_DEFAULT": ("none", IAM_DEFAULTS),
}


_LISTS: dict[str, Callable[[tuple[str, ...]], object]] = {
    # environment variable, and its field in capitals: what raises ValueError for a wrong one
    "ALLOWED_PRIVATE_CIDRS": allowed_networks,
    "TARGET_ARNS": check_patterns,
    "INGEST_BUSINESSES": check_businesses,
}


def settings_from(environment: Mapping[str, str]) -> Settings:
    problems: list[str] = []
    values: dict[str, object] = {}
    for variable, field in (
        ("WHEEL_TABLE", "wheel_table"),
        ("REGISTRY_TABLE", "registry_table"),
        ("SECRETS_TABLE", "secrets_table"),
        ("SLICE_QUEUE_URL", "slice_queue_url"),
        ("SLOW_QUEUE_URL", "slow_queue_url"),
        ("STACK_ID", "stack_id"),
    ):
        values[field] = environment.get(variable, "")
        if not values[field]:
            problems.append(f"{variable} is missing")
    values["bulk_function"] = environment.get("BULK_FUNCTION", "")
    values["stack_timers_as"] = environment.get("STACK_TIMERS_AS", "")
    # Of the ingest function alone.
    values["ingest_queue_url"] = environment.get("INGEST_QUEUE_URL", "")
    values["ingest_dead_letter_queue_url"] = environment.get("INGEST_DEAD_LETTER_QUEUE_URL", "")
    values["notifier_function"] = environment.get("NOTIFIER_FUNCTION", _itself(environment))
    if not values["notifier_function"]:
        problems.append("NOTIFIER_FUNCTION is missing")
    for variable, (field, smallest, largest) in _NUMBERS.items():
        if variable not in environment:
            continue
        text = environment[variable]
        if not text.isdecimal() or len(text) > 12 or not smallest <= int(text) <= largest:
            problems.append(f"{variable}={text!r} is no whole number from {smallest} to {largest}")
        else:
            values[field] = int(text)
    for variable, (usual, choices) in _CHOICES.items():
        chosen = environment.get(variable, usual)
        if chosen not in choices:
            problems.append(f"{variable}={chosen!r} is none of {', '.join(choices)}")
        values[variable.lower()] = choices.get(chosen)
    _read_lists(environment, values, problems)
    values["own_names"] = _own_names(environment)
    if problems:
        raise SettingsError("; ".join(problems))
    settings = Settings(**values)  # type: ignore[arg-type]
    _check_together(settings)
    return settings


def _read_lists(
    environment: Mapping[str, str], values: dict[str, object], problems: list[str]
) -> None:
    for variable, check in _LISTS.items():
        parts = environment.get(variable, "").replace(" ", "").split(",")
        given = tuple(part for part in parts if part)
        try:
            check(given)
        except ValueError as error:
            problems.append(f"{variable}: {error}")
        values[variable.lower()] = given


def _itself(environment: Mapping[str, str]) -> str:
    """The function that the notifier invokes: itself, whose name the template cannot give it. By
    its alias, since an unpublished version is not live."""
    name = environment.get("AWS_LAMBDA_FUNCTION_NAME", "")
    return f"{name}:{LIVE}" if name else ""


def _own_names(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Those that the template lists, and the function's own: a template cannot pass a function its
    own name."""
    names = f"{environment.get('OWN_NAMES', '')},{environment.get('AWS_LAMBDA_FUNCTION_NAME', '')}"
    return tuple(name for name in names.split(",") if name)


def _check_together(settings: Settings) -> None:
    """The inequalities that the protocols require."""
    problems = []
    try:
        Scope.of_stack(settings.stack_id)
    except ValueError as error:
        problems.append(f"STACK_ID={settings.stack_id!r} {error}")
    sweep_least = DIRECT_LATE_MS // 1000 + settings.notifier_timeout_seconds + SWEEP_MARGIN_SECONDS
    if settings.sweep_delay_seconds < sweep_least:
        problems.append(
            f"SWEEP_DELAY_SECONDS={settings.sweep_delay_seconds} is less than {sweep_least}: "
            f"{DIRECT_LATE_MS // 1000} s for late direct messages, NOTIFIER_TIMEOUT_SECONDS "
            "and a margin"
        )
    if problems:
        raise SettingsError("; ".join(problems))
