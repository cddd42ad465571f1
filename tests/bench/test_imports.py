"""Every benchmark that needs nothing installed beside the service finds what it is made of."""

from importlib import import_module
from pathlib import Path

from tests.support.cases import each_case

ROOT = Path(__file__).parents[2]
# What Celery and the others need is installed for `make bench` alone.
OTHERS = "bench/one_machine/compared"
MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in sorted((ROOT / "bench").rglob("*.py"))
    if OTHERS not in path.as_posix()
]


@each_case("module", MODULES)
def test_a_benchmark_can_be_imported(module: str) -> None:
    import_module(module)
