"""The client's tests in Node.js against the local cloud, and the examples of its README."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from local.cloud import LocalCloud
from local.seed import EDITOR_CAPABILITIES
from tests.e2e.demo_model_client import DemoModelClient, Step, script_marker, text_step, tool_call_step
from tests.packages.node_tests import CLIENT, list_test_files, require_node_packages, run_node_tests

INSERTIONS = tuple(("insertHtml", {"parentId": "root", "html": f"<p>{word}</p>"}) for word in ("one", "two"))
SCRIPTS: dict[str, tuple[Step, ...]] = {
    "insert": (tool_call_step(*INSERTIONS, text="I add two paragraphs."), text_step("Both are there.")),
    "read": (tool_call_step(("read_document", {})), text_step("I have read it.")),
    "text": (text_step("Nothing to do."),),
    "weather": (
        tool_call_step(*(("get_weather", {"city": city}) for city in ("Bern", "Rome"))),
        text_step("Sun in both."),
    ),
}
"""What the demo model answers in each round of a turn, by the name that the tests use."""


@pytest.fixture(scope="module")
def node_environment(cloud: LocalCloud, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    require_node_packages()
    picture = tmp_path_factory.mktemp("pictures") / "noise.png"
    Image.effect_noise((1200, 1200), 100).save(picture)
    assert cloud.model is not None
    model = DemoModelClient(cloud.model.url)
    keys = {name: model.add_script(*steps, by="round", repeat_last=True) for name, steps in SCRIPTS.items()}
    yield {
        "FERMATA_URL": cloud.url,
        "FERMATA_TOKEN": cloud.token,
        "FERMATA_CHAT_TOKEN": cloud.sign_token(capabilities=["ai.chat", *EDITOR_CAPABILITIES]),
        "FERMATA_SCRIPTS": json.dumps({name: script_marker(key) for name, key in keys.items()}),
        "FERMATA_LARGE_PNG": str(picture),
    }
    for key in keys.values():
        model.delete_script(key)
    model.close()


@pytest.mark.parametrize("path", list_test_files(CLIENT / "test" / "cloud"), ids=lambda path: path.name)
def test_the_client_works_with_the_service(path: Path, node_environment: dict[str, str]) -> None:
    run_node_tests([path], node_environment).check()
