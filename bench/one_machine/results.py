"""The results of a run, and the values that tables and plots need. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bench.one_machine.conditions import Conditions

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Results:
    conditions: Conditions
    records: list[Record]
    skipped: Mapping[str, str]
    counted: Mapping[int, Mapping[str, float]]

    def of(self, case: str, **wanted: Any) -> list[Record]:
        """In the order in which they were measured."""
        return [
            record
            for record in self.records
            if record["case"] == case and all(record.get(k) == v for k, v in wanted.items())
        ]

    def creation_rates(self) -> dict[str, float]:
        rates: dict[str, float] = {}
        for burst in self.of("burst", wait_ms=0):
            how = "in batches" if burst["batch"] else "singly"
            rates.setdefault(f"{burst['contender']}, {how}", burst["created_per_second"])
        return rates
