"""Fixtures of the end-to-end tests: a local cloud with short times, and what drives and disturbs it.

The cloud is not the one of other tests: these tests deploy it again, break its functions and let its calls fail.
A test leaves it as it was, because pytest-xdist runs test files in an order of its own.
"""

import json
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

from fermata.credentials import credential_store, scope_defaults
from fermata.domain.caller import Caller
from local.cloud import LocalCloud
from local.seed import CAPABILITIES, EDITOR_CAPABILITIES, USER, WIDE_LIMITS, LocalResources
from tests.e2e import canaries, whole_cloud_checks
from tests.e2e.chat_session import ChatSession, open_http
from tests.e2e.demo_model_client import DemoModelClient
from tests.e2e.deployment_parameters import SHORT_START_GRACE, SHORT_TIMINGS, function_folders
from tests.e2e.fault_rules import FaultRules
from tests.tenant_tokens import make_tenant

SESSION_SECONDS = 3600
"""How long tokens are valid that all tests of a session use: longer than the session takes on a busy machine."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the last errors that functions have logged beside a failure."""
    report = yield
    running = getattr(item, "funcargs", {}).get("cloud")
    if report.when == "call" and report.failed and running is not None:
        report.sections.append(
            ("The last errors in the functions' logs", "\n\n".join(read_logged_errors(running)[-3:]))
        )
    return report


def read_logged_errors(cloud: LocalCloud) -> list[str]:
    """Read the exceptions that functions have logged, except injected ones."""
    lines = [
        json.loads(line) for name in function_folders() for line in cloud.read_log_lines(name) if '"exception"' in line
    ]
    found = [line for line in lines if "injected" not in line["exception"]]
    return [f"{line['timestamp']} {line['message']}\n{line['exception'][-1500:]}" for line in found]


@pytest.fixture(scope="session")
def faults_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("faults")


@pytest.fixture(scope="session")
def cloud(tmp_path_factory: pytest.TempPathFactory, faults_folder: Path) -> Iterator[LocalCloud]:
    directory = tmp_path_factory.mktemp("cloud")
    environment = SHORT_START_GRACE | {"FERMATA_FAULTS": faults_folder}
    with LocalCloud(directory, parameters=SHORT_TIMINGS, environment=environment) as running:
        use_api_key(running, canaries.KEY)
        yield running
        whole_cloud_checks.check_executions(running)
        whole_cloud_checks.check_logs(running)


def use_api_key(cloud: LocalCloud, key: str) -> None:
    """Give the site scope an API key that can be recognized anywhere, as an operator does."""
    new = {"providerId": "anthropic", "authMode": "apiKey", "displayLabel": "Demo", "apiKey": key}
    with open_http(cloud) as bare:
        made = bare.post("/credentials", json=new)
        assert made.status_code == 201, made.text
        default = {"credentialId": made.json()["credential"]["id"], "modelId": "fermata-demo"}
        assert bare.put("/defaults/site", json=default).status_code == 200


@pytest.fixture(scope="session")
def resources(cloud: LocalCloud) -> LocalResources:
    """Resources to look at what is stored."""
    return cloud.resources()


@pytest.fixture(scope="session")
def model(cloud: LocalCloud) -> Iterator[DemoModelClient]:
    assert cloud.model is not None
    model = DemoModelClient(cloud.model.url)
    yield model
    model.close()


@pytest.fixture
def faults(cloud: LocalCloud, faults_folder: Path) -> Iterator[FaultRules]:
    yield FaultRules(faults_folder)
    for rule in faults_folder.glob("*.json"):
        rule.unlink(missing_ok=True)


@pytest.fixture
def without_sweep(cloud: LocalCloud) -> Iterator[None]:
    """Disable the schedule that starts turns whose execution was never started, a second after their start."""
    events = cloud.get_client("events")
    (name,) = (rule["Name"] for rule in events.list_rules()["Rules"] if "RecoverFunctionSweep" in rule["Name"])
    events.disable_rule(Name=name)
    yield
    events.enable_rule(Name=name)


@pytest.fixture
def new_session(
    cloud: LocalCloud, resources: LocalResources, model: DemoModelClient
) -> Iterator[Callable[..., ChatSession]]:
    """Make sessions of the local user, or of the user that the given claims name."""
    made: list[ChatSession] = []

    def make(**claims: object) -> ChatSession:
        made.append(ChatSession(cloud, resources, model, cloud.sign_token(**claims) if claims else cloud.token))
        return made[-1]

    yield make
    for session in made:
        session.close()


@pytest.fixture
def session(new_session: Callable[..., ChatSession]) -> ChatSession:
    return new_session()


@pytest.fixture(scope="session")
def stranger(resources: LocalResources) -> str:
    """A token with all capabilities, of another tenant's user with the same name."""
    signer = make_tenant(resources, "stranger", issuer="http://127.0.0.1/stranger")
    return signer.sign_token(USER, exp=int(time.time()) + SESSION_SECONDS)


@pytest.fixture(scope="session")
def editors_token(resources: LocalResources) -> str:
    """A token of a tenant with Instatic's pages, which know neither `cancelled` nor retraction."""
    signer = make_tenant(resources, "editor", issuer="http://127.0.0.1/editor", dialect="instatic", limits=WIDE_LIMITS)
    everything = (*CAPABILITIES, *EDITOR_CAPABILITIES)
    caller = Caller(tenant="editor", user="ada", capabilities=frozenset(everything))
    credential = credential_store.create_credential(resources, caller, "anthropic", "apiKey", "demo", "demo")
    scope_defaults.set_default(resources, caller, "site", credential.id, "fermata-demo")
    return signer.sign_token("ada", everything, exp=int(time.time()) + SESSION_SECONDS)


@pytest.fixture
def editor(
    cloud: LocalCloud, resources: LocalResources, model: DemoModelClient, editors_token: str
) -> Iterator[ChatSession]:
    session = ChatSession(cloud, resources, model, editors_token, tenant="editor")
    yield session
    session.close()


@pytest.fixture(scope="session")
def gateway(cloud: LocalCloud) -> str:
    """URL of the emulator's own API Gateway, without the front door."""
    return f"{cloud.endpoint}/restapis/{cloud.get_output('ApiId')}/{cloud.get_output('StageName')}/_user_request_"
