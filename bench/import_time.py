"""What processor time the import of the round's function takes, beside the packages it cannot do without."""

import statistics
import subprocess
import sys

from bench.report import ResultRow
from local.processes import ROOT

TIMING_PROGRAM = """
import sys, time
started = time.process_time()
{}
print(time.process_time() - started)
"""
BARE_IMPORTS = "import boto3, httpx, pydantic, aws_lambda_powertools"
"""pydantic and httpx load most of themselves later, when they are used."""
USED_IMPORTS = """
import boto3, httpx, httpcore, pydantic, aws_lambda_powertools
class Model(pydantic.BaseModel):
    name: str
"""
"""As any function that uses them has them: with one model, and with what httpx sends through."""
FUNCTION_IMPORT = f"sys.path.insert(0, {str(ROOT / 'functions/round')!r}); import app"
MAX_IMPORT_RATIO = 1.3


def measure_import_ratio(times: int) -> ResultRow:
    """Separate processes, taken in turn, with bytecode in place."""
    statements = (BARE_IMPORTS, USED_IMPORTS, FUNCTION_IMPORT)
    for statement in statements:
        _seconds(statement)
    samples = [[_seconds(statement) for statement in statements] for _ in range(times)]
    unused, used, ours = (statistics.median(side) for side in zip(*samples, strict=True))
    numbers = {
        "unusedMs": round(unused * 1000),
        "usedMs": round(used * 1000),
        "roundMs": round(ours * 1000),
        "n": times,
    }
    what = "import of the round function, to its packages as used"
    result = f"{ours / used:.2f} × ({ours / unused:.2f} × unused)"
    return ResultRow("import", what, f"≤ {MAX_IMPORT_RATIO:g} ×", result, ours / used <= MAX_IMPORT_RATIO, numbers)


def _seconds(statement: str) -> float:
    command = [sys.executable, "-c", TIMING_PROGRAM.format(statement)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    return float(ended.stdout.strip().splitlines()[-1])
