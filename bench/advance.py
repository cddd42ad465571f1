"""What it costs to advance the movable clock over a timer that runs each minute: calls to the
emulated AWS for each run, which are the same everywhere, and the processor's time a day.

`make bench-advance` (HOURS=n).
"""

import os
import time
from collections import Counter
from typing import Any
from unittest.mock import patch

from local.aws.emulator import Emulator
from local.stack import LocalStack
from tests.support.service import Service

RUNS_A_DAY = 1_440


def advanced(hours: float) -> tuple[int, Counter[str], float]:
    """Runs delivered, calls by operation, and processor seconds."""
    calls: Counter[str] = Counter()
    handle: Any = vars(Emulator)["_handle_alone"]

    def counted(emulator: Emulator, request: Any) -> Any:
        target = request.headers.get("X-Amz-Target", b"")
        name = target.decode() if isinstance(target, bytes) else str(target)
        calls[name.rpartition(".")[2]] += 1
        return handle(emulator, request)

    with patch.object(Emulator, "_handle_alone", counted), LocalStack(frozen=True) as stack:
        service = Service(stack.url)
        timer = {"name": "each minute", "every_seconds": 60, **service.new_task("minutes")}
        status, answer = service.call("POST", "/v1/timers", timer)
        assert status == 201, answer
        service.advance(600)  # the first runs find cold threads
        calls.clear()
        begun = time.process_time()
        delivered = sum(service.advance(600) for _ in range(round(hours * 6)))
        return delivered, calls, time.process_time() - begun


def main() -> None:
    delivered, calls, seconds = advanced(float(os.environ.get("HOURS", "1")))
    by_operation = ", ".join(
        f"{name} {count / delivered:.1f}" for name, count in calls.most_common()
    )
    print(f"{delivered} runs of a timer, {calls.total() / delivered:.1f} calls of AWS each")
    print(f"  {by_operation}")
    print(f"a day of {RUNS_A_DAY} runs: {seconds / delivered * RUNS_A_DAY:.0f} s of a processor")


if __name__ == "__main__":
    main()
