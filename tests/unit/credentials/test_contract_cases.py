"""The recorded cases about credentials and defaults, through the Lambda handlers."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fermata.aws.resources import Resources, get_resources
from fermata.aws.settings import Settings, SettingsError
from functions.api import app as api
from functions.credentials import app as credentials
from tests.proxy_events import make_proxy_event
from tests.resources import environment_from_resources
from tests.strict.model_lists import ACCEPTED_KEY, ModelListServer
from tests.tenant_tokens import make_tenant

CASES = {case["id"]: case for case in json.loads(Path(__file__).with_name("cases.json").read_text())}
AI = "/admin/api/ai"
NEW = {"providerId": "openai", "authMode": "apiKey", "displayLabel": "Mine", "apiKey": ACCEPTED_KEY}
Ask = Callable[..., tuple[int, Any]]


@pytest.fixture
def ask(local_resources: Resources, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ask]:
    for name, value in environment_from_resources(local_resources).items():
        monkeypatch.setenv(name, value)
    get_resources.cache_clear()
    bakery = make_tenant(local_resources)

    def asked(method: str, path: str, body: Any = None) -> tuple[int, Any]:
        door = credentials if path.startswith("/credentials") else api
        answer = door.handler(make_proxy_event(method, AI + path, bakery.bearer_headers(), body), None)
        return answer["statusCode"], json.loads(answer["body"] or "null")

    yield asked
    get_resources.cache_clear()


def test_c177_a_credential_is_created_although_no_default_could_be_found_for_it(ask: Ask) -> None:
    assert ask("POST", "/credentials", NEW)[0] == CASES["C177"]["expected"]["status"]
    assert ask("GET", "/defaults") == (200, {"defaults": {}})


def test_c179_a_provider_that_echoes_the_key_is_quoted_without_it(ask: Ask, server: ModelListServer) -> None:
    expected = CASES["C179"]["expected"]
    server.set_error("/v1/models", 400, {"error": {"message": f"Incorrect API key provided: {ACCEPTED_KEY}"}})
    _, created = ask("POST", "/credentials", NEW)
    status, body = ask("POST", f"/credentials/{created['credential']['id']}/test")
    assert (status, body["ok"]) == (expected["status"], expected["ok"])
    assert expected["error_contains"] in body["error"]
    assert ACCEPTED_KEY not in json.dumps(body)


def test_c180_a_deployment_without_its_master_key_says_which_setting_is_missing(local_resources: Resources) -> None:
    """The original's is named INSTATIC_SECRET_KEY, ours KEY_ID; without it no function works."""
    assert CASES["C180"]["expected"]["error_contains"] == "INSTATIC_SECRET_KEY"
    without = {name: value for name, value in environment_from_resources(local_resources).items() if name != "KEY_ID"}
    with pytest.raises(SettingsError, match=r": KEY_ID\.$"):
        Settings.from_environment(without)


def test_c181_a_default_is_set_and_cleared_and_lets_its_credential_go(ask: Ask) -> None:
    assert CASES["C181"]["input"][0] == "PUT data 200"
    credential_id = ask("POST", "/credentials", NEW)[1]["credential"]["id"]
    assert ask("PUT", "/defaults/data", {"credentialId": credential_id, "modelId": "gpt-5"})[0] == 200
    assert ask("DELETE", f"/credentials/{credential_id}")[0] == 409
    assert ask("DELETE", "/defaults/data") == (204, None)
    assert "data" not in ask("GET", "/defaults")[1]["defaults"]
    assert ask("DELETE", f"/credentials/{credential_id}") == (200, {"ok": True})
