"""The cost of each function's cold start, compared with `import boto3` and its two clients: CPU and
memory of new processes of Python 3.13, on the built artefacts.

A function imports its code, reads its settings, and builds the same two clients as the comparison,
even if it needs them later. All run in turn, round by round, so that a busy machine affects all of
them. A ratio is the median of the ratios of the rounds. The machine is not AWS: only the ratios are
meaningful.

    make bench-cold
"""

import argparse
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from statistics import median

GOALS = {
    "api": 1.5,
    "scheduler": 1.25,
    "notifier": 1.25,
    "sweeper": 1.25,
    "bulk": 1.5,
    "authorizer": 1.25,
    "ingest": 1.5,
    "stack_timers": 1.5,
}
BASELINE = "boto3 and 2 clients"

_CLIENTS = "import boto3; boto3.client('dynamodb'); boto3.client('sqs')"
_FUNCTION = (
    "import sys; sys.path.insert(0, {folder!r}); import app\n"
    "from duewheel.wiring import process\n"
    "process.settings(), process.dynamodb(), process.sqs()"
)
_TOLD = (
    "\nimport resource, sys; used = resource.getrusage(resource.RUSAGE_SELF)"
    "\nprint((used.ru_utime + used.ru_stime) * 1000, used.ru_maxrss / 1024, len(sys.modules))"
)
_ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "none",
    "AWS_SECRET_ACCESS_KEY": "none",
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EXECUTION_ENV": "AWS_Lambda_python3.13",
    "AWS_LAMBDA_FUNCTION_NAME": "bench",
    "POWERTOOLS_SERVICE_NAME": "duewheel",
    "WHEEL_TABLE": "wheel",
    "REGISTRY_TABLE": "registry",
    "SLICE_QUEUE_URL": "https://sqs.us-east-1.amazonaws.com/123456789012/slices",
    "SLOW_QUEUE_URL": "https://sqs.us-east-1.amazonaws.com/123456789012/slow",
    "SECRETS_TABLE": "secrets",
    "NOTIFIER_FUNCTION": "notifier",
    "STACK_ID": "arn:aws:cloudformation:us-east-1:123456789012:stack/duewheel/1",
}


@dataclass(frozen=True)
class Start:
    cpu_ms: float
    memory_mb: float
    modules: float


def started(python: str, build: Path, code: str) -> Start:
    """One new process. The layers are on the path as Lambda mounts them."""
    layers = (build / "CoreLayer" / "python", build / "VendorLayer" / "python")
    environment = {**_ENVIRONMENT, "PYTHONPATH": os.pathsep.join(map(str, layers))}
    done = subprocess.run(
        [python, "-c", code + _TOLD], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return Start(*map(float, done.stdout.split()[-3:]))


def code_of(build: Path) -> dict[str, str]:
    folders = {name: str(build / f"{name.title().replace('_', '')}Function") for name in GOALS}
    functions = {name: _FUNCTION.format(folder=folder) for name, folder in folders.items()}
    return {"python alone": "pass", BASELINE: _CLIENTS, **functions}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", required=True, help="a python3.13")
    parser.add_argument("--build", type=Path, required=True, help="what make build made")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    codes = code_of(options.build.resolve())
    for code in codes.values():  # afterwards the files are cached for all
        started(options.python, options.build.resolve(), code)
    rounds = []
    for number in range(options.rounds):
        print(f"round {number + 1} of {options.rounds}", end="\r", flush=True)
        rounds.append(
            {name: started(options.python, options.build.resolve(), c) for name, c in codes.items()}
        )
    show(rounds)


def show(rounds: list[dict[str, Start]]) -> None:
    print(f"{len(rounds)} fresh processes each, in turns; medians\n")
    print("| | CPU | memory | modules | ratio | goal |")
    print("|---|---|---|---|---|---|")
    for name in rounds[0]:
        starts = [each[name] for each in rounds]
        ratio = median(each[name].cpu_ms / each[BASELINE].cpu_ms for each in rounds)
        goal = f"at most {GOALS[name]:g}" if name in GOALS else ""
        print(
            f"| {name} | {median(start.cpu_ms for start in starts):.0f} ms "
            f"| {median(start.memory_mb for start in starts):.0f} MB "
            f"| {starts[0].modules:.0f} | {ratio:.2f} | {goal} |"
        )


if __name__ == "__main__":
    main()
