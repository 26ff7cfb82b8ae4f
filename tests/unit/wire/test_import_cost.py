"""Modules that a function imports before its first request."""

import subprocess
import sys

import pytest

from tests.quick_suite_samples import sample_for_quick_suite

HEAVY = ("httpx", "starlette", "uvicorn", "aws_xray_sdk", "aws_lambda_powertools.event_handler")


@pytest.mark.parametrize(
    "module",
    sample_for_quick_suite(
        ["functions.credentials.app", "fermata.wire.http.dispatch", "fermata.wire.bodies.requests"], every=3
    ),
)
def test_an_http_function_imports_only_what_it_uses(module: str) -> None:
    program = f"import sys, {module}; print([name for name in {HEAVY} if name in sys.modules])"
    environment = {"PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("function", sample_for_quick_suite(["stream_turns", "tool_result", "round", "api"], every=4))
def test_the_imaging_library_is_imported_with_the_first_image(function: str) -> None:
    program = f"import sys, functions.{function}.app; print('PIL' in sys.modules)"
    environment = {"PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("function", sample_for_quick_suite(["round", "tool_result", "stream_turns"], every=3))
def test_an_event_is_built_when_it_first_occurs(function: str) -> None:
    program = f"""
import functions.{function}.app
from fermata.domain.events import EVENT_CLASSES, parse_events
built = lambda: {{event_type for event_type, model in EVENT_CLASSES.items() if model.__pydantic_complete__}}
before = built()
parse_events([{{"type": "text", "text": "hello"}}])
print(built() - before, len(before) <= 1)
"""
    environment = {"PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.strip() == "{'text'} True"


def test_a_round_imports_budgets_for_turns_that_have_one() -> None:
    program = "import sys, functions.round.app; print([name for name in sys.modules if '.budgets.' in name])"
    environment = {"PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.strip() == "[]"


NOT_IN_AN_ORDINARY_ROUND = (
    "difflib",
    "fermata.cms",
    "fermata.content",
    "fermata.domain.json_repairs",
    "fermata.drivers.error_mapping",
    "fermata.drivers.image_refusals",
    "fermata.drivers.overflow_refusals",
    "fermata.drivers.protocols.thinking_tags",
    "fermata.drivers.spent_credit",
    "fermata.hosts",
    "fermata.limits.count_use",
    "fermata.limits.usage_counters",
    "fermata.plans",
    "fermata.remote_tools",
    "fermata.tools.cms",
    "fermata.tools.schema.validate_manifest_value",
    "fermata.turns.approvals.approval_record",
    "fermata.turns.approvals.decision_commit",
    "fermata.turns.approvals.expire_approvals",
    "fermata.turns.undo",
    "fermata.webhooks.webhook",
    "dulwich",
    "mcp",
    "yaml",
)
"""Modules, and packages with all of theirs."""


def test_a_round_imports_what_only_some_turns_need_when_they_need_it() -> None:
    program = f"""
import sys, functions.round.app
names = {NOT_IN_AN_ORDINARY_ROUND}
print(sorted(m for m in sys.modules if any(m == name or m.startswith(name + ".") for name in names)))
"""
    environment = {"PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.strip() == "[]", "import these in the function that needs them, and say why (decision 0169)"
