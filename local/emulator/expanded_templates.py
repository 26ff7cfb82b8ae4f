"""Keep expanded SAM templates, because the translator takes more than two seconds of processor time (decision 0504).

They are kept beside the interpreter's packages, so they go when the environment does. What a template expands to
depends on it, on its parameters and on the translator. Of an address of this machine in a parameter it matters only
which ones are the same: ports differ at every start.
"""

import contextlib
import hashlib
import json
import os
import re
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

TRANSLATOR = "aws-sam-translator"
MAX_KEPT = 20
_FIRST_NUMBER = 70_000
"""In the place of a port. No port is as large."""
_ADDRESS = re.compile(r"127\.0\.0\.1:(\d++)")
Json = dict[str, Any]


def find_folder() -> Path:
    return Path(sys.prefix) / "expanded-templates"


def expand_once(request: Json, folder: Path, version: str, expand: Callable[[Json], Json]) -> Json:
    """Return what a template expands to, from the folder if it is there.

    Args:
        request: The members `template` and `parameters`.
        folder: Where expanded templates are kept. One that cannot be written to is not used.
        version: Of the translator, and of whatever else decides on the result.
        expand: Expands the template of a request. An error that it raises is not kept.
    """
    known, ports = _number_addresses(request)
    text = json.dumps([version, known], sort_keys=True)
    file = folder / f"{hashlib.sha256(text.encode()).hexdigest()}.json"
    expanded = _read(file)
    if expanded is None:
        expanded = json.dumps(expand(known))
        _keep(file, expanded)
    return dict(json.loads(_ADDRESS.sub(lambda found: _restore(found, ports), expanded)))


def find_translator_version() -> str:
    return metadata.version(TRANSLATOR)


def _number_addresses(request: Json) -> tuple[Json, list[str]]:
    """Replace the ports of this machine in parameters by numbers in the order in which they appear."""
    ports: list[str] = []

    def number(found: "re.Match[str]") -> str:
        if found[1] not in ports:
            ports.append(found[1])
        return f"127.0.0.1:{_FIRST_NUMBER + ports.index(found[1])}"

    parameters = json.dumps(request["parameters"], sort_keys=True)
    return request | {"parameters": json.loads(_ADDRESS.sub(number, parameters))}, ports


def _restore(found: "re.Match[str]", ports: list[str]) -> str:
    number = int(found[1]) - _FIRST_NUMBER
    return f"127.0.0.1:{ports[number]}" if 0 <= number < len(ports) else found[0]


def _read(file: Path) -> str | None:
    with contextlib.suppress(OSError, ValueError):
        text = file.read_text()
        json.loads(text)
        os.utime(file)
        return text
    return None


def _keep(file: Path, text: str) -> None:
    """Write the file at once or not at all, and remove those that were not used for longest."""
    with contextlib.suppress(OSError):
        file.parent.mkdir(exist_ok=True)
        unfinished = file.with_suffix(f".{os.getpid()}")
        unfinished.write_text(text)
        unfinished.replace(file)
        kept = sorted(file.parent.glob("*.json"), key=lambda each: each.stat().st_mtime, reverse=True)
        for old in kept[MAX_KEPT:]:
            old.unlink(missing_ok=True)
