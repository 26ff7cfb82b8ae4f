"""Measure the processor time to import the round function, compared with that of the packages it needs."""

import os
import statistics
import subprocess
import sys
import tempfile

from bench.report import ResultRow
from local.processes import ROOT

TIMING_PROGRAM = """
import sys, time
started = time.process_time()
{}
print(time.process_time() - started)
"""
BARE_IMPORTS = "import boto3, httpx, pydantic, aws_lambda_powertools"
"""pydantic and httpx load most of their modules later, on first use."""
USED_IMPORTS = """
import boto3, httpx, httpcore, pydantic, aws_lambda_powertools
class Model(pydantic.BaseModel):
    name: str
"""
"""The same packages as any function that uses them loads them: with one model, and the transport of httpx."""
FUNCTION_IMPORT = f"""
import os
os.environ["AWS_LAMBDA_INITIALIZATION_TYPE"] = "on-demand"
import fermata
del os.environ["AWS_LAMBDA_INITIALIZATION_TYPE"]
sys.path.insert(0, {str(ROOT / "functions/round")!r})
import app
"""
"""As Lambda does it, without garbage collections (decision 0284), but without the clients that are created then."""
MAX_IMPORT_RATIO = 1.25


def measure_import_ratio(repetitions: int) -> ResultRow:
    """Compare medians of separate processes, which alternate and find compiled bytecode, as in the layers."""
    statements = (BARE_IMPORTS, USED_IMPORTS, FUNCTION_IMPORT)
    with tempfile.TemporaryDirectory() as bytecode:
        for statement in statements:
            _time_statement(statement, bytecode)
        samples = [[_time_statement(statement, bytecode) for statement in statements] for _ in range(repetitions)]
    bare, used, function = (statistics.median(column) for column in zip(*samples, strict=True))
    numbers = {
        "unusedMs": round(bare * 1000),
        "usedMs": round(used * 1000),
        "roundMs": round(function * 1000),
        "n": repetitions,
    }
    ratio = function / used
    title = "import of the round function, to its packages as used"
    result = f"{ratio:.2f} × ({function / bare:.2f} × unused)"
    return ResultRow("import", title, f"≤ {MAX_IMPORT_RATIO:g} ×", result, ratio <= MAX_IMPORT_RATIO, numbers)


def _time_statement(statement: str, bytecode: str) -> float:
    """Time a statement in a process that keeps its bytecode in a folder, whatever the environment says of bytecode."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = bytecode
    command = [sys.executable, "-c", TIMING_PROGRAM.format(statement)]
    completed = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, env=environment)
    return float(completed.stdout.strip().splitlines()[-1])
