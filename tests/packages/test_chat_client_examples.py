"""The components in docs/clients.md are valid, and import what their packages have."""

import re
import subprocess
from pathlib import Path

import pytest

from local.install_node_packages import PACKAGES
from tests.packages.node_tests import require_node_packages

PAGE = (Path(__file__).parents[2] / "docs" / "clients.md").read_text()
BLOCK = re.compile(r"^```(jsx|vue)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SCRIPT = re.compile(r"<script setup>\n(.*?)</script>", re.DOTALL)


@pytest.mark.parametrize("code", [code for _, code in BLOCK.findall(PAGE)], ids=["react", "vue"])
def test_a_component_is_bundled(code: str, tmp_path: Path) -> None:
    require_node_packages()
    found = SCRIPT.search(code)
    source = found[1] if found else code
    arguments = ["--bundle", "--platform=browser", "--format=esm", "--jsx=automatic", "--loader=jsx"]
    ran = subprocess.run(
        ["npx", "esbuild", *arguments, "--log-level=warning", f"--outfile={tmp_path / 'out.js'}"],
        cwd=PACKAGES,
        input=source,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "is not exported" not in ran.stderr, ran.stderr
