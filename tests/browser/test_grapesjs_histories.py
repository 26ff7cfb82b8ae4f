"""Random histories of edits in a GrapesJS editor are taken back step by step, by the editor's undo and by inverses."""

from pathlib import Path
from typing import Any

import pytest

from tests.browser.chromium import Chromium
from tests.browser.grapesjs_editor import GrapesEditor

HTML = (
    '<header id="top"><nav><a href="#menu">Menu</a> <a href="/">Home</a></nav><h1>Bread</h1></header>'
    '<main><section id="menu" class="card"><h2>Menu</h2><ul><li>Rye</li><li>Spelt <b>new</b></li></ul></section>'
    '<section class="card" style="color:red"><p>Open <i>daily</i></p><img src="a.png" alt="Loaf"></section></main>'
    "<footer><p>Foot</p></footer>"
)
CSS = ":root{--c:#f00}.card{margin:0;color:var(--c)}@media (max-width:600px){.card{margin:1px}}li,b{top:0}"
RUN = Path(__file__).with_name("random_history.js").read_text()
SHARE = Path(__file__).with_name("shared_editing.js").read_text()


@pytest.fixture(scope="module")
def editor(editor_window: GrapesEditor) -> GrapesEditor:
    """Not started: each test starts it with a page of its own."""
    return editor_window


@pytest.mark.parametrize("seed", range(1, 7))
def test_a_random_history_is_taken_back_step_by_step(browser: Chromium, editor: GrapesEditor, seed: int) -> None:
    editor.start(HTML, CSS)
    ran: dict[str, Any] = editor.page.evaluate(RUN, {"seed": seed, "count": 30})
    assert ran["problems"] == []
    assert ran["count"] == 30


@pytest.mark.parametrize("seed", range(1, 5))
def test_nothing_that_a_person_changes_is_lost_before_the_model_has_read_it(
    browser: Chromium, editor: GrapesEditor, seed: int
) -> None:
    editor.start(HTML, CSS)
    ran: dict[str, Any] = editor.page.evaluate(SHARE, {"seed": seed, "count": 60})
    assert ran["problems"] == []
    assert min(ran["conflicts"], ran["done"]) > 0
