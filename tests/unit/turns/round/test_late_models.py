"""A usual turn finds the models that it validates built: its function was imported with more processor (0608)."""

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest
from pydantic import BaseModel
from pydantic._internal._mock_val_ser import set_model_mocks

from fermata.domain.events import Event
from fermata.tools.tool import ToolInput
from tests.unit.turns.stage import OK, Stage, reply_with_calls, tool_call_block

BUILT = ("__pydantic_core_schema__", "__pydantic_validator__", "__pydantic_serializer__", "__pydantic_complete__")
PROGRAM = """
import json, sys
import functions.round.app, functions.stream_turns.app, functions.tool_result.app
print(json.dumps(sorted(name for name in sys.modules if name.startswith("fermata."))))
"""
SNAPSHOT = {"pageId": "p1", "nodes": {"root": {"id": "root"}}}


def list_late_models(base: type[BaseModel] = BaseModel) -> Iterator[type[BaseModel]]:
    """Iterate over the models of the service that are built on first use, but those that stand for what occurs."""
    for model in base.__subclasses__():
        if model.__module__.startswith("fermata.") and not issubclass(model, Event | ToolInput):
            if model.model_config.get("defer_build"):
                yield model
            yield from list_late_models(model)


@pytest.fixture(scope="module")
def imported_modules() -> set[str]:
    """The modules that the functions of a turn import before their first event. Others come when they are used."""
    environment = {"PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment, check=True)
    return set(json.loads(done.stdout))


@pytest.fixture
def priced_stage(stage: Stage) -> Stage:
    stage.set_price(input_per_mtok=1, output_per_mtok=2)
    return stage


@pytest.fixture
def late_models(
    priced_stage: Stage, imported_modules: set[str], monkeypatch: pytest.MonkeyPatch
) -> list[type[BaseModel]]:
    """Models as they are after an import, whatever other tests have used."""
    models = [model for model in dict.fromkeys(list_late_models()) if model.__module__ in imported_modules]
    for model in models:
        for name in BUILT:
            monkeypatch.setattr(model, name, getattr(model, name))
        set_model_mocks(model)
        model.__pydantic_complete__ = False
    return models


def test_a_usual_turn_builds_no_model(priced_stage: Stage, late_models: list[type[BaseModel]]) -> None:
    assert len(late_models) > 50
    stage = priced_stage
    stage.start_turn("Add a footer", snapshot=SNAPSHOT)
    stage.script_replies(reply_with_calls(tool_call_block("insertHtml", parentId="root", html="<p>x</p>")))
    stage.run_workflow()
    stage.answer_request(OK, snapshot=SNAPSHOT)
    stage.script_replies("Done.")
    assert stage.run_workflow() == "finished"
    built = {model.__name__ for model in late_models if model.__pydantic_complete__}
    assert built == set(), "give these models defer_build=False"
