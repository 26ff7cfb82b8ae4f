"""Expanded templates are kept, whichever ports the processes of a local cloud have."""

from pathlib import Path
from typing import Any

import pytest

from local.emulator.expanded_templates import MAX_KEPT, expand_once

TEMPLATE = {"Resources": {}}


class Translator:
    """Expands a template to its parameters, and counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def expand(self, request: dict[str, Any]) -> dict[str, Any]:
        self.asked += 1
        return {"Resources": request["parameters"]}


def expand(translator: Translator, folder: Path, version: str = "1", **parameters: str) -> Any:
    request = {"template": TEMPLATE, "parameters": parameters}
    return expand_once(request, folder, version, translator.expand)["Resources"]


def test_a_template_is_expanded_once_whatever_the_ports_are(tmp_path: Path) -> None:
    translator = Translator()
    for port in (45555, 1, 0):
        parameters = {"PublicUrl": f"http://127.0.0.1:{port}", "Model": "http://127.0.0.1:7/v1"}
        assert expand(translator, tmp_path, **parameters) == parameters
    assert translator.asked == 1


@pytest.mark.parametrize(
    "other",
    [
        {"PollMs": "6"},
        {"PollMs": "5", "PublicUrl": "http://127.0.0.1:8/x"},
        {"PollMs": "5", "version": "2"},
    ],
    ids=["another value", "another address", "another translator"],
)
def test_another_request_is_expanded_again(tmp_path: Path, other: dict[str, str]) -> None:
    translator = Translator()
    expand(translator, tmp_path, PollMs="5")
    wanted = {name: value for name, value in other.items() if name != "version"}
    assert expand(translator, tmp_path, **other) == wanted
    assert translator.asked == 2


def test_two_addresses_that_are_the_same_are_not_two_that_differ(tmp_path: Path) -> None:
    translator = Translator()
    for second in (1, 2):
        parameters = {"A": "http://127.0.0.1:1", "B": f"http://127.0.0.1:{second}"}
        assert expand(translator, tmp_path, **parameters) == parameters
    assert translator.asked == 2


def test_a_damaged_file_and_a_folder_that_cannot_be_written_do_no_harm(tmp_path: Path) -> None:
    translator = Translator()
    expand(translator, tmp_path, PollMs="5")
    (file,) = tmp_path.iterdir()
    file.write_text('{"Resources": {"Poll')
    assert expand(translator, tmp_path, PollMs="5") == {"PollMs": "5"}
    assert expand(translator, tmp_path, PollMs="5") == {"PollMs": "5"}
    assert translator.asked == 2
    assert expand(translator, file / "none", PollMs="5") == {"PollMs": "5"}


def test_an_error_is_not_kept(tmp_path: Path) -> None:
    def refuse(_: object) -> dict[str, Any]:
        raise ValueError("not valid")

    with pytest.raises(ValueError, match="not valid"):
        expand_once({"template": TEMPLATE, "parameters": {}}, tmp_path, "1", refuse)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_keeps_the_templates_that_were_used_last(tmp_path: Path) -> None:
    translator = Translator()
    for number in range(MAX_KEPT + 3):
        expand(translator, tmp_path, PollMs=str(number))
    assert len(list(tmp_path.iterdir())) == MAX_KEPT
