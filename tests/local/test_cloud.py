"""Test the whole local cloud: a turn through it, what survives a restart, and that nothing is left behind."""

import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from fermata_client import FermataClient, run_turn
from local.cloud import LocalCloud
from local.processes import ROOT
from tests.cloud import start_own_cloud
from tests.local.test_emulator import running
from tests.waiting import wait_until

pytestmark = pytest.mark.cloud


def test_a_turn_runs_from_prompt_to_done(cloud: LocalCloud, service: FermataClient) -> None:
    outcome = run_turn(service, "data", "Hello")
    assert outcome.status == "done"
    assert "Demo model" in outcome.view.text
    assert [it["status"] for it in cloud.wait_for_executions(str(outcome.view.bridge_id))] == ["SUCCEEDED"]


def test_everything_listens_on_the_loopback_interface(cloud: LocalCloud) -> None:
    assert cloud.model is not None
    for address in (cloud.url, cloud.endpoint, cloud.model.url):
        assert httpx.URL(address).host == "127.0.0.1"


def test_the_tenants_secret_is_made_for_this_cloud_and_readable_by_its_owner_only(cloud: LocalCloud) -> None:
    secret = cloud.directory / "secret"
    assert secret.stat().st_mode & 0o077 == 0
    assert len(secret.read_text()) >= 43


def test_claims_of_a_token_can_be_changed(cloud: LocalCloud) -> None:
    with (
        FermataClient(cloud.url, cloud.sign_token(sub="somebody", capabilities=[])) as client,
        pytest.raises(Exception, match="403"),
    ):
        client.create_conversation("data")


def test_functions_print_into_their_logs(cloud: LocalCloud, service: FermataClient) -> None:
    bridge = run_turn(service, "data", "Hello").view.bridge_id
    wait_until(
        lambda: any(str(bridge) in line for line in cloud.read_log_lines("round")), "the round's lines are there"
    )
    wait_until(lambda: cloud.read_log_lines("stream_turns"), "the stream's lines are there")


def test_other_settings_reach_functions_and_the_front_door_without_a_new_address(tmp_path: Path) -> None:
    with start_own_cloud(tmp_path, parameters={"MaxRounds": 3}) as cloud:
        before = cloud.url
        assert cloud.resources().settings.max_rounds == 3
        cloud.redeploy(parameters={"MaxRounds": 4}, environment={"UNANSWERED_CALLS": "tell_model"})
        assert (cloud.resources().settings.max_rounds, cloud.resources().settings.unanswered_calls) == (4, "tell_model")
        assert cloud.url == before
        with FermataClient(cloud.url, cloud.token) as client:
            assert run_turn(client, "data", "Hello").status == "done"


def test_function_processes_can_be_listed_and_killed(cloud: LocalCloud, service: FermataClient) -> None:
    assert run_turn(service, "data", "Hello").status == "done"
    wait_until(lambda: not cloud.worker_pids("round", busy=True), "the function has ended")
    assert cloud.worker_pids("round")
    assert cloud.kill_workers("round") == 0, "only those are killed that run an invocation"


def test_no_process_outlives_a_killed_parent(tmp_path: Path) -> None:
    source = (
        "import signal; from pathlib import Path; from local.cloud import LocalCloud\n"
        f"with LocalCloud(Path({str(tmp_path)!r})) as cloud:\n"
        "    print(*cloud.child_pids(), flush=True); signal.pause()"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", source], stdout=subprocess.PIPE, cwd=ROOT, stderr=subprocess.DEVNULL
    )
    try:
        assert parent.stdout is not None
        with parent.stdout:
            pids = [int(word) for word in parent.stdout.readline().split()]
        assert len(pids) == 4
        assert all(running(pid) for pid in pids)
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    wait_until(lambda: not any(running(pid) for pid in pids), "all of its processes are gone")
