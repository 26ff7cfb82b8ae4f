"""Cost of a turn, computed from its counts at list prices."""

from dataclasses import replace
from decimal import Decimal

import pytest

from bench.turn_cost import GIB, FunctionMemory, TurnCounts, TurnShape, cost_per_1000_turns
from local import template

NO_COUNTS = TurnCounts(
    transitions=0,
    write_units=0,
    read_units=0,
    s3_puts=0,
    s3_gets=0,
    api_requests=0,
    sent_bytes=0,
    log_bytes=0,
    stored_bytes=0,
)
MEMORY = FunctionMemory(round=1024, stream=512, tool_result=256, rollup=512)
SHAPE = TurnShape()


def component_cost(name: str, counts: TurnCounts = NO_COUNTS) -> Decimal:
    return cost_per_1000_turns(counts, SHAPE, MEMORY)[name]


def test_the_reference_turn_lasts_as_long_as_its_parts() -> None:
    assert SHAPE.round_seconds == pytest.approx(40 + 4 * (1.5 + 0.3))
    assert SHAPE.wall_seconds == pytest.approx(SHAPE.round_seconds + 3 * 4 + 0.2 * (4 + 2 * 3))


@pytest.mark.parametrize(
    ("name", "counts", "dollars"),
    [
        ("Step Functions", replace(NO_COUNTS, transitions=10), "0.25"),
        ("DynamoDB writes", replace(NO_COUNTS, write_units=160), "0.1"),
        ("DynamoDB reads", replace(NO_COUNTS, read_units=400), "0.05"),
        ("S3", replace(NO_COUNTS, s3_puts=2, s3_gets=5), "0.012"),
        ("API Gateway", replace(NO_COUNTS, api_requests=2), "0.007"),
        ("egress", replace(NO_COUNTS, sent_bytes=GIB), "90"),
        ("logs", replace(NO_COUNTS, log_bytes=GIB), "500"),
        ("traces", replace(NO_COUNTS, api_requests=4), "0.001"),
    ],
)
def test_each_count_is_charged_at_its_list_price(name: str, counts: TurnCounts, dollars: str) -> None:
    assert component_cost(name, counts) == Decimal(dollars)


def test_storage_is_paid_for_the_life_of_a_turn() -> None:
    assert component_cost("DynamoDB storage", replace(NO_COUNTS, stored_bytes=GIB)) == Decimal("0.45") * 37 / 30 * 1000


def test_a_function_is_paid_by_memory_and_second_and_for_each_call() -> None:
    seconds, calls = Decimal(str(SHAPE.round_seconds)), 4
    assert component_cost("Lambda round") == 1000 * (seconds * Decimal("0.0000133334") + calls * Decimal("0.0000002"))
    half = Decimal(str(SHAPE.wall_seconds)) / 2 * Decimal("0.0000133334") + Decimal("0.0000002")
    assert component_cost("Lambda stream") == pytest.approx(1000 * half)


def test_the_memory_is_that_of_the_template() -> None:
    document = template.load_template()
    memory = FunctionMemory.from_template(document)
    assert memory.round == document["Resources"]["RoundFunction"]["Properties"]["MemorySize"]
    assert memory.tool_result == document["Globals"]["Function"]["MemorySize"]
