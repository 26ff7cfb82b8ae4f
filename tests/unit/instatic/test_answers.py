"""Everything the service sends to Instatic's browsers passes the schemas that they validate it with."""

import json
from typing import Any

import pytest

from fermata.credentials import model_list
from fermata.domain.dialect import Dialect
from fermata.domain.events import Event
from fermata.domain.model_info import ModelCapabilities, ModelInfo
from fermata.wire.renderers.ndjson import render_event
from tests.tenant_tokens import ALL_CAPABILITIES
from tests.unit.instatic.conftest import Open
from tests.unit.instatic.schemas import (
    AUDIT_KEYS,
    CAPABILITIES,
    CREDENTIAL,
    DEFAULT,
    GENERATIONS,
    MODEL,
    PRICING,
    STORED_DEFAULT,
    USAGE,
    Shape,
    event_shape,
    find_schema_error,
)
from tests.unit.turns.stage import Stage
from tests.unit.usage.ledger_factories import make_usage, write_and_count
from tests.unit.wire.event_samples import EVENT_SAMPLES

INSTATIC: Dialect = "instatic"


def check(values: list[Any], shape: Shape) -> None:
    assert values
    for value in values:
        assert find_schema_error(value, shape) is None, value


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("event", EVENT_SAMPLES, ids=lambda event: event.type)
def test_a_line_is_accepted_by_every_generation(event: Event, generation: str) -> None:
    line = render_event(7, event, INSTATIC)
    if line:
        members = json.loads(line)
        shape = event_shape(members["type"], generation)
        assert shape is not None, "no browser knows this event"
        assert find_schema_error(members, shape) is None


def test_settings_and_audit_are_accepted(stage: Stage, another_browser: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    models = (
        ModelInfo(id="bare", label="bare", capabilities=ModelCapabilities(tool_calling=False, vision_input=False)),
        ModelInfo(
            id="full",
            label="Full",
            capabilities=ModelCapabilities(tool_calling=True, vision_input=True),
            tier="smart",
            per_token=("0.000001", "0.000002"),
            context_window=1000,
        ),
    )
    monkeypatch.setattr(model_list, "_get_cached_models", lambda *_: models)
    browser = another_browser(capabilities=ALL_CAPABILITIES)
    made = {"providerId": "ollama", "authMode": "baseUrl", "displayLabel": "Mine", "baseUrl": "http://127.0.0.1:1"}
    created = browser.http.post("/credentials", json=made)
    assert created.status_code == 201, created.text
    check([created.json()["credential"], *browser.http.get("/credentials").json()["credentials"]], CREDENTIAL)
    credential = created.json()["credential"]["id"]
    listed = browser.http.get("/providers/ollama/models", params={"credentialId": credential}).json()["models"]
    check(listed, MODEL)
    check([model["capabilities"] for model in listed], CAPABILITIES)
    check([model["pricing"] for model in listed if "pricing" in model], PRICING)
    chosen = {"credentialId": credential, "modelId": "full"}
    check([browser.http.put("/defaults/site", json=chosen).json()["default"]], STORED_DEFAULT)
    check(list(browser.http.get("/defaults").json()["defaults"].values()), DEFAULT)
    write_and_count(stage.resources, make_usage(stage.resources.clock.time()))
    audit = browser.http.get("/audit", params={"tz": "Europe/Berlin"}).json()
    check([audit["totals"]], USAGE)
    for name, keys in AUDIT_KEYS.items():
        check(audit[name], {**USAGE, **keys})
