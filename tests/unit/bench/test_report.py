"""The report of measured numbers and their targets."""

from bench.report import ResultRow, format_table


def test_a_missed_target_stands_out() -> None:
    lines = format_table(
        [ResultRow("a", "one", "≤ 2", "3", is_met=False), ResultRow("b", "two", "≤ 2", "1", is_met=True)]
    ).splitlines()
    assert lines[2].endswith("MISSED")
    assert lines[3].endswith("ok")
