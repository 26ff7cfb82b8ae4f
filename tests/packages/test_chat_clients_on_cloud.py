"""Clients of the AI SDK, of AG-UI and CopilotKit's, each as npm has it, against the local cloud."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from local.cloud import LocalCloud
from local.seed import CAPABILITIES, EDITOR_CAPABILITIES
from tests.e2e.chat_session import open_http
from tests.e2e.demo_model_client import DemoModelClient, Step, script_marker, text_step, tool_call_step
from tests.packages.node_tests import CLIENT, list_test_files, require_node_packages, run_node_tests

ASKED_TOOL = "list_loop_sources"
"""The tool that the tests' policy asks about."""
LOCATIONS = (("locate", {"of": "user"}), ("locate", {"of": "shop"}))
SCRIPTS: dict[str, tuple[Step, ...]] = {
    "text": (text_step("Nothing to do."),),
    "read": (tool_call_step(("list_documents", {})), text_step("I have read it.")),
    "locate": (tool_call_step(*LOCATIONS, text="I look."), text_step("Two streets away.")),
    "approval": (tool_call_step((ASKED_TOOL, {})), text_step("Decided.")),
    "failure": (text_step("", status=401),),
}
"""What the demo model answers in each round of a turn, by the name that the tests use."""


@pytest.fixture(scope="module")
def node_environment(cloud: LocalCloud) -> Iterator[dict[str, str]]:
    require_node_packages()
    assert cloud.model is not None
    model = DemoModelClient(cloud.model.url)
    keys = {name: model.add_script(*steps, by="round", repeat_last=True) for name, steps in SCRIPTS.items()}
    rights = sorted({*CAPABILITIES, *EDITOR_CAPABILITIES, "ai.tools.approve", "ai.policies.manage"})
    token = cloud.sign_token(capabilities=rights)
    with _asking_policy(cloud, token):
        yield {
            "FERMATA_URL": cloud.url,
            "FERMATA_TOKEN": token,
            "FERMATA_SCRIPTS": json.dumps({name: script_marker(key) for name, key in keys.items()}),
        }
    for key in keys.values():
        model.delete_script(key)
    model.close()


@contextmanager
def _asking_policy(cloud: LocalCloud, token: str) -> Iterator[None]:
    """Let the workspace ask about one tool, and about none afterwards."""
    with open_http(cloud, token) as http:
        rules = [{"effect": "ask", "tools": [ASKED_TOOL]}]
        assert http.put("/approval-policy", json={"rules": rules}).status_code == 200
        yield
        assert http.put("/approval-policy", json={"rules": []}).status_code == 200


def test_the_clients_that_people_use_work_unchanged(node_environment: dict[str, str]) -> None:
    run_node_tests(list_test_files(CLIENT / "test" / "chat-clients"), node_environment).check()
