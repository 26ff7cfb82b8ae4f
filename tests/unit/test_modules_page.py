"""docs/modules.md is written from the docstrings, and every module has one."""

from pathlib import Path

import pytest

from local.modules_page import PACKAGE, PAGE_PATH, read_summary, render_page

MODULES = sorted(PACKAGE.rglob("*.py"))


def test_the_page_is_up_to_date() -> None:
    assert PAGE_PATH.read_text() == render_page(), "Write it again: make docs"


@pytest.mark.parametrize("module", MODULES, ids=lambda module: str(module.relative_to(PACKAGE)))
def test_every_module_says_in_a_sentence_what_it_does(module: Path) -> None:
    assert read_summary(module).endswith((".", ":"))
