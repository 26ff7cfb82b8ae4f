"""Every recorded case of a remote tool has its right answer, under its own id."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from fermata.aws.resources import Resources
from fermata.remote_tools.manifest_tool_executor import AttemptFailed, ConsentPolicy, EarlierResults, find_manifest_tool
from fermata.remote_tools.provider_alias import make_provider_alias
from fermata.remote_tools.tool_manifest import InvalidManifest, normalize_tool_name, parse_manifest
from tests.scripted_tool_server import ScriptedToolServer
from tests.shared_cases.governance_cases import read_governance_cases
from tests.unit.remote_tools.manifests import ABSENT, make_manifest_json, make_manifest_tool
from tests.unit.remote_tools.test_deployment_tools import deploy, list_names, make_entry
from tests.unit.remote_tools.test_manifest_tool_executor import TRANSIENT, ScriptedAttempts, run
from tests.unit.remote_tools.test_signed_tool_attempt import attempt, fail

CASES = {case["id"]: case for case in read_governance_cases("manifest_validation", "envelope", "tool_alias")}
ENDPOINT_HOST = ("v.example.com", "93.184.216.34")
"""A public address in place of a name: tests ask no name server."""


def list_cases(area: str, *, has: str) -> list[str]:
    return [name for name, case in CASES.items() if case["area"] == area and has in case["input"]]


@pytest.mark.parametrize("case", list_cases("manifest_validation", has="manifest_patch"))
def test_a_manifest_is_valid_or_its_wrong_member_is_named(case: str) -> None:
    given, expected = CASES[case]["input"]["manifest_patch"], CASES[case]["expected"]
    changes = {name: ABSENT if value == "<absent>" else value for name, value in given.items()}
    if expected["ok"]:
        assert parse_manifest(make_manifest_json(**changes)).name == "pim.getProduct"
        return
    with pytest.raises(InvalidManifest) as refused:
        parse_manifest(make_manifest_json(**changes))
    assert refused.value.field == expected["field"]


@pytest.mark.parametrize("case", list_cases("manifest_validation", has="endpoint"))
def test_a_tool_is_registered_with_a_web_address_only(case: str, resources: Resources, tmp_path: Path) -> None:
    endpoint = CASES[case]["input"]["endpoint"].replace(*ENDPOINT_HOST)
    names = list_names(deploy(resources, tmp_path, make_entry("pim.a", endpoint=endpoint)))
    assert bool(names) is CASES[case]["expected"]["accepted_in_source"]


def test_the_last_registration_of_a_name_is_found_however_it_is_spelled() -> None:
    given, expected = CASES["G162"]["input"], CASES["G162"]["expected"]
    names = given["register"]
    tools = {normalize_tool_name(name): make_manifest_tool(ScriptedAttempts(), name=name) for name in names}
    found = find_manifest_tool(tools, given["lookup"])
    assert (found is not None, len(tools)) == (expected["found"], expected["count"])


def test_a_deployment_starts_without_its_file_of_tools(
    resources: Resources, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    deployed = deploy(resources, tmp_path)
    (tmp_path / "tools.json").unlink()
    assert len(list_names(deployed)) == CASES["G163"]["expected"]["remote_tools"]
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_a_wrong_entry_of_a_deployments_file_is_left_out(resources: Resources, tmp_path: Path) -> None:
    kinds = CASES["G164"]["input"]["entries"]
    entries = [make_entry(f"tool{n}", **({} if kind == "valid" else {"manifest": {}})) for n, kind in enumerate(kinds)]
    assert len(list_names(deploy(resources, tmp_path, *entries))) == CASES["G164"]["expected"]["registered"]


HANDLERS: Mapping[str, Callable[[], ScriptedAttempts]] = {
    "G181": lambda: ScriptedAttempts(TRANSIENT, TRANSIENT),
    "G183": lambda: ScriptedAttempts(*[AttemptFailed("no answer in time", is_transient=True)] * 2),
}


@pytest.mark.parametrize("case", list_cases("envelope", has="manifest_patch"))
def test_an_envelope_says_how_a_call_went(case: str) -> None:
    given, expected = CASES[case]["input"], CASES[case]["expected"]
    tool = make_manifest_tool(HANDLERS.get(case, ScriptedAttempts)(), **given["manifest_patch"])
    tools = {normalize_tool_name(tool.manifest.name): tool}
    policy = ConsentPolicy() if given["policy"] == "default" else ConsentPolicy(given["policy"]["autoRunRead"])
    name = given.get("toolName", tool.manifest.name)
    envelope = run(find_manifest_tool(tools, name), given["input"], name=name, policy=policy)
    error = (
        {"code": envelope["error"]["code"], "retryable": envelope["error"]["retryable"]} if not envelope["ok"] else None
    )
    assert (envelope["ok"], error, envelope["attempts"]) == (
        expected["ok"],
        expected.get("error"),
        expected["attempts"],
    )
    assert envelope.get("data") == expected.get("data")
    assert ("latencyMs" in envelope) is expected["has_latencyMs"]


def test_the_same_call_of_a_trace_is_answered_from_memory() -> None:
    traces = {name: EarlierResults() for name in CASES["G184"]["input"]["calls"]}
    tool = make_manifest_tool(ScriptedAttempts())
    data = [run(tool, earlier=traces[name])["data"] for name in CASES["G184"]["input"]["calls"]]
    assert data == CASES["G184"]["expected"]["data"]


def test_an_endpoint_that_is_down_is_quoted(tool_server: ScriptedToolServer) -> None:
    given, expected = CASES["G185"]["input"], CASES["G185"]["expected"]
    tool_server.script_answer(given["body"].encode() + b"x" * 1000, given["http_status"])
    failure = fail(tool_server.url)
    assert str(given["http_status"]) in failure.message
    assert failure.message.partition(": ")[2].startswith(given["body"] + "x" * 196)
    assert failure.is_transient is expected["error"]["retryable"]


def test_an_answer_without_data_is_wrong_output(tool_server: ScriptedToolServer) -> None:
    tool_server.script_answer(CASES["G186"]["input"]["body"])
    tool = make_manifest_tool(lambda _: attempt(tool_server.url), outputSchema={"type": "object"})
    assert run(tool)["error"]["code"] == "invalid_tool_output"


@pytest.mark.parametrize("case", list_cases("tool_alias", has="name"))
def test_every_provider_accepts_the_alias_of_a_recorded_name(case: str) -> None:
    given = CASES[case]["input"]
    assert make_provider_alias(given["name"], set(given["used"])) == CASES[case]["expected"]["alias"]


def test_no_recorded_case_of_a_tool_is_left_out() -> None:
    named = {"G162", "G163", "G164", "G184", "G185", "G186"}
    listed = [
        *list_cases("manifest_validation", has="manifest_patch"),
        *list_cases("manifest_validation", has="endpoint"),
        *list_cases("envelope", has="manifest_patch"),
        *list_cases("tool_alias", has="name"),
    ]
    assert sorted([*named, *listed]) == sorted(CASES)
