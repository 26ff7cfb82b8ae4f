"""Patch CloudFormation: expand SAM templates in a process of their own.

Unpatched MiniStack imports the SAM translator, which keeps 25 MB for one deployment.
"""

import json
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

from ministack.services.cloudformation import engine

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
    request = json.dumps({"template": template, "parameters": parameters})
    ended = subprocess.run([sys.executable, "-P", PROGRAM], input=request, capture_output=True, text=True, check=False)  # noqa: S603  our own
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
