"""docs/modules.md is written from the docstrings, and every module has one."""

from local.modules_page import (
    OTHER_FOLDERS,
    PACKAGE,
    PAGE_PATH,
    ROOT,
    SCRIPT_FOLDERS,
    list_modules,
    read_summary,
    render_page,
)

FOLDERS = (PACKAGE, *(ROOT / name for name in (*OTHER_FOLDERS, *SCRIPT_FOLDERS)))


def test_the_page_is_up_to_date() -> None:
    assert PAGE_PATH.read_text() == render_page(), "Write it again: make docs"


def test_every_module_says_in_a_sentence_what_it_does() -> None:
    modules = [module for folder in FOLDERS for module in list_modules(folder)]
    silent = [str(module.relative_to(ROOT)) for module in modules if not read_summary(module).endswith((".", ":"))]
    assert silent == [], "begin them with a docstring, scripts with /** a comment */"
