"""The project's licence and its way to report a vulnerability are where people and package tools look for them."""

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("project", ["layers/fermata", "client"])
def test_each_package_names_the_licence_and_ships_its_text(project):
    """A wheel holds the text only if it is inside of the project's own folder."""
    metadata = tomllib.loads((ROOT / project / "pyproject.toml").read_text())["project"]
    assert metadata["license"] == "Apache-2.0"
    assert metadata["license-files"] == ["LICENSE"]
    assert (ROOT / project / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


def test_the_licence_is_the_whole_text():
    text = (ROOT / "LICENSE").read_text()
    assert "Version 2.0, January 2004" in text
    assert text.index("END OF TERMS AND CONDITIONS") < text.index("APPENDIX: How to apply")


def test_a_vulnerability_is_reported_without_an_address_that_nobody_reads():
    text = (ROOT / "SECURITY.md").read_text()
    assert "Report a\nvulnerability" in text
    assert "@" not in text
