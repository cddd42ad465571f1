"""The cost of a deployment: units counted on moto, times the list prices in prices.json.

Values that one machine cannot give are assumed, and printed with the result.

    make cost
"""

from bench.cost import tables
from bench.cost.bill import CostModel


def main() -> None:
    model = CostModel()
    for table in (
        tables.counted,
        tables.per_million,
        tables.provisioned,
        tables.create_costs,
        tables.beside_others,
        tables.bills,
        tables.assumptions,
    ):
        for line in table(model):
            print(line, flush=True)


if __name__ == "__main__":
    main()
