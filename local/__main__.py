"""`python -m local`: the whole service on this machine, until Ctrl-C."""

import logging
import os
import signal
import sys
from threading import Thread

try:
    from duewheel.rules.instants import NoInstant, ms_from_rfc3339
    from local.aws.emulator import collect_rarely
    from local.aws.intrinsics import TemplateError
    from local.chaos.faults import Faults
    from local.stack import LocalStack
except ModuleNotFoundError as error:
    needed = str(error.name).partition(".")[0]
    if needed in ("duewheel", "functions", "local"):
        raise
    sys.exit(f"The local stack needs {needed}: pip install 'duewheel[local]'")

PORT_DEFAULT = 8080
ENDS_WITH_STDIN = "END_WITH_STDIN"
ENDING = (signal.SIGINT, signal.SIGTERM)


def main() -> int:
    _log_to_the_console()
    try:
        stack = _stack_wanted()
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    # Signals are blocked before there are threads, which inherit that, and then waited for: a
    # handler would interrupt the main thread while it may hold a lock.
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    if os.environ.get(ENDS_WITH_STDIN) == "on":
        Thread(target=_end_with_stdin, name="standard input", daemon=True).start()
    try:
        stack.start()
    except (TemplateError, OSError) as error:
        print(f"The stack does not start: {error}", file=sys.stderr)
        return 1
    collect_rarely()
    print(_what_is_up(stack), flush=True)
    signal.sigwait(ENDING)
    print("Stopping.", flush=True)
    stack.stop()
    return 0


def _stack_wanted() -> LocalStack:
    """The stack that the environment describes; ValueError if it is invalid."""
    port = os.environ.get("PORT", str(PORT_DEFAULT))
    if not port.isdecimal() or int(port) > 65_535:
        raise ValueError(f"PORT={port!r} is no port")
    if (ends := os.environ.get(ENDS_WITH_STDIN, "off")) not in ("on", "off"):
        raise ValueError(f"{ENDS_WITH_STDIN}={ends!r} is neither on nor off")
    auth = os.environ.get("LOCAL_AUTH") or "off"
    if auth not in ("on", "off"):
        raise ValueError(f"LOCAL_AUTH={auth!r} is neither 'on' nor 'off'")
    frozen_at = os.environ.get("FROZEN_AT")
    return LocalStack(
        int(port),
        start_ms=_start_ms(frozen_at),
        frozen=bool(frozen_at),
        faults=_faults_wanted(),
        asks_for_keys=auth == "on",
    )


def _start_ms(frozen_at: str | None) -> int | None:
    if not frozen_at:
        return None
    if os.environ.get("AWS_ENDPOINT_URL"):
        raise ValueError("FROZEN_AT: only the emulator has a clock that can be frozen")
    try:
        return ms_from_rfc3339(frozen_at)
    except NoInstant as error:
        raise ValueError(f"FROZEN_AT={frozen_at!r} {error}") from None


def _end_with_stdin() -> None:
    """The process that started the stack holds the other end of its standard input, and the kernel
    closes it however that process ends. The stack then ends without a clean-up: its data is in
    memory."""
    while os.read(sys.stdin.fileno(), 4096):
        pass
    os._exit(0)


def _faults_wanted() -> Faults:
    rate, seed = os.environ.get("FAULTS") or "0", os.environ.get("SEED") or "1"
    try:
        faults = Faults(float(rate), int(seed))
    except ValueError:
        raise ValueError(f"FAULTS={rate!r} SEED={seed!r}: these are numbers") from None
    if not 0 <= faults.rate <= 0.5:
        raise ValueError(f"FAULTS={rate} is no chance from 0 to 0.5")
    if faults.rate and os.environ.get("AWS_ENDPOINT_URL"):
        raise ValueError("FAULTS go wrong in the emulator only, not behind AWS_ENDPOINT_URL")
    return faults


def _log_to_the_console() -> None:
    """The log of the local stack itself; the functions have their own logger."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
    logging.getLogger("local").addHandler(handler)


def _what_is_up(stack: LocalStack) -> str:
    task = (
        '{"biz_type": "orders", "delay_seconds": 3, "payload": {"order": 17}, '
        f'"callback": {{"url": "{stack.url}/_local/inbox/orders"}}}}'
    )
    bearer = f" -H 'authorization: Bearer {stack.admin_key}'" if stack.admin_key else ""
    where = stack.endpoint or "memory, gone when it stops"
    return f"""Duewheel is up on {stack.url}, its data in {where}.

  console   {stack.url}/console
  service   {stack.url}/v1/health
  inbox     {stack.url}/_local/received/orders   what callbacks brought
  clock     {stack.url}/_local/clock             freeze, advance, reset
  faults    {stack.url}/_local/faults            {_what_goes_wrong(stack.faults)}
  metrics   {stack.url}/_local/metrics           what CloudWatch would make of the logs
  access    {_who_may_call(stack.admin_key)}

Make a task that is due in three seconds, and see its callback:

  curl -s {stack.url}/v1/tasks -H 'content-type: application/json'{bearer} -d '{task}'
  sleep 4; curl -s {stack.url}/_local/received/orders

Ctrl-C stops it.
"""


def _who_may_call(admin_key: str | None) -> str:
    if admin_key is None:
        return "everybody may do everything (LOCAL_AUTH=on asks for API keys)"
    return f"by API keys; the first, an admin's, which is not shown again: {admin_key}"


def _what_goes_wrong(faults: Faults) -> str:
    return f"{faults.rate:g} of all calls, seed {faults.seed}" if faults.rate else "none"


if __name__ == "__main__":
    sys.exit(main())
