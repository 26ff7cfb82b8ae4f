"""The examples of docs/clients.md work as they are written."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from local.cloud import LocalCloud
from tests.e2e.chat_session import open_http
from tests.waiting import BACKSTOP_SECONDS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "clients.md").read_text()
_BLOCK = re.compile(r"^```(python|js|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
COMMANDS = {"python": (sys.executable, "-c"), "js": ("node", "--input-type=module", "-e"), "sh": ("bash", "-euc")}
EXAMPLES = [
    (f"{heading}: {language}", language, code)
    for heading, section in zip(_HEADING.findall(PAGE), _HEADING.split(PAGE)[2::2], strict=True)
    for language, code in _BLOCK.findall(section)
]


@pytest.fixture(scope="module")
def environment(cloud: LocalCloud) -> dict[str, str]:
    with open_http(cloud) as http:
        made = http.post("/api-keys", json={"label": "Examples", "capabilities": ["ai.chat", "ai.tools.write"]})
    assert made.status_code == 201, made.text
    known = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    paths = os.pathsep.join([str(ROOT / "client"), os.environ.get("PYTHONPATH", "")])
    return known | {"FERMATA_URL": cloud.url, "FERMATA_KEY": made.json()["key"], "PYTHONPATH": paths}


def test_the_page_has_examples_in_every_language() -> None:
    assert {language for _, language, _ in EXAMPLES} == set(COMMANDS)


@pytest.mark.parametrize(("language", "code"), [one[1:] for one in EXAMPLES], ids=[one[0] for one in EXAMPLES])
def test_an_example_runs_and_prints_an_answer(language: str, code: str, environment: dict[str, str]) -> None:
    command = COMMANDS[language]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is missing.")
    ran = subprocess.run(
        [*command, code],
        cwd=ROOT / "packages",
        env=environment,
        capture_output=True,
        text=True,
        timeout=BACKSTOP_SECONDS,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert len(ran.stdout.split()) > 3, ran.stdout
    assert '"error"' not in ran.stdout
