"""Check the table of Lambda handlers in docs/architecture.md against the functions and their operations."""

import re
from pathlib import Path

from fermata.wire.operations.common import API_PREFIX
from fermata.wire.operations.surface import OPERATIONS

ROOT = Path(__file__).parents[2]
SECTION = re.compile(r"^## Lambda handlers\n(?P<text>.*?)^## ", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| (?P<functions>(?:`\w+`(?:, )?)+) \| (?P<triggers>[^|]+) \|", re.MULTILINE)


def read_triggers() -> dict[str, str]:
    section = SECTION.search((ROOT / "docs" / "architecture.md").read_text())
    assert section is not None
    rows = [(match["functions"], match["triggers"]) for match in ROW.finditer(section["text"])]
    return {function: triggers for functions, triggers in rows for function in re.findall(r"\w+", functions)}


def test_the_table_has_every_function() -> None:
    assert set(read_triggers()) == {path.parent.name for path in (ROOT / "functions").glob("*/app.py")}


def test_the_table_names_what_each_function_serves() -> None:
    triggers = read_triggers()
    served = {(it.function, it.path.removeprefix(API_PREFIX).strip("/").partition("/")[0]) for it in OPERATIONS}
    assert {(function, noun) for function, noun in served if noun not in triggers[function]} == set()
