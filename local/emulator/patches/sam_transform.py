"""Patch CloudFormation: expand SAM templates in a process of their own, and each of them once.

Unpatched MiniStack imports the SAM translator, which keeps 25 MB for one deployment.
"""

import hashlib
import json
import os
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

from ministack.services.cloudformation import engine

from local.emulator.expanded_templates import expand_once, find_folder, find_translator_version
from local.emulator.patches.registry import pin_functions

TRANSLATOR_MODULE = "samtranslator.translator.transform"
PROGRAM = Path(__file__).parents[1] / "expand_sam_template.py"
Json = dict[str, Any]

pin_functions(engine, _apply_transforms="d3f0e05e08db")


def expand_template(template: Json, parameters: Json, managed_policies: Any) -> Json:
    """Expand a template as the translator's own function does.

    Raises:
        ValueError: The template is not valid; the message says why.
    """
    request = {"template": template, "parameters": parameters}
    return expand_once(request, find_folder(), _find_version(), _run_translator)


def _find_version() -> str:
    """Return what decides besides the request: the translator, the program that calls it, and the region it is for."""
    program = hashlib.sha256(PROGRAM.read_bytes()).hexdigest()
    return f"{find_translator_version()} {program} {os.environ.get('AWS_DEFAULT_REGION')}"


def _run_translator(request: Json) -> Json:
    ended = subprocess.run(  # noqa: S603  our own
        [sys.executable, "-P", PROGRAM], input=json.dumps(request), capture_output=True, text=True, check=False
    )
    if ended.returncode:
        raise ValueError(f"The SAM translator has failed: {ended.stderr}")
    answer = json.loads(ended.stdout)
    if "error" in answer:
        raise ValueError(answer["error"])
    return dict(answer["template"])


def _make_translator_module() -> types.ModuleType:
    module = types.ModuleType(TRANSLATOR_MODULE)
    vars(module)["transform"] = expand_template
    return module


sys.modules[TRANSLATOR_MODULE] = _make_translator_module()
