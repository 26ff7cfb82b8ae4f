"""One local cloud for all turns proved here, with short times, and what tests need to drive and disturb it.

It is not the one other tests share: these tests deploy it anew, break its functions and let its calls fail.
"""

import json
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

from fermata.credentials import defaults, keyring
from fermata.words.caller import Caller
from local.cloud import LocalCloud
from local.seed import CAPABILITIES, EDITOR, USER, LocalDesk
from tests.callers import make_tenant
from tests.e2e import canaries
from tests.e2e.deployment import SHORT, functions
from tests.e2e.faults import Faults
from tests.e2e.model import Model
from tests.e2e.talk import Talk, http

LAST = ("test_waits.py", "test_afterwards.py")
"""One leaves the clocks too short for other tests; the other asks about all turns of the session."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    items.sort(
        key=lambda item: LAST.index(item.path.name) if item.path.parent == here and item.path.name in LAST else -1
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What the functions had to say about a failure is shown beside it."""
    report = yield
    running = getattr(item, "funcargs", {}).get("cloud")
    if report.when == "call" and report.failed and running is not None:
        report.sections.append(("The last errors in the functions' logs", "\n\n".join(errors(running)[-3:])))
    return report


def errors(cloud: LocalCloud) -> list[str]:
    """Exceptions that functions have logged and no rule of ours has raised."""
    lines = [json.loads(line) for name in functions() for line in cloud.log_lines(name) if '"exception"' in line]
    found = [line for line in lines if "injected" not in line["exception"]]
    return [f"{line['timestamp']} {line['message']}\n{line['exception'][-1500:]}" for line in found]


@pytest.fixture(scope="session")
def faults_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("faults")


@pytest.fixture(scope="session")
def cloud(tmp_path_factory: pytest.TempPathFactory, faults_folder: Path) -> Iterator[LocalCloud]:
    directory = tmp_path_factory.mktemp("cloud")
    with LocalCloud(directory, FERMATA_FAULTS=faults_folder, **SHORT) as running:
        use_a_key(running, canaries.KEY)
        yield running


def use_a_key(cloud: LocalCloud, key: str) -> None:
    """Give the site scope a key that can be told from everything else, as an operator would."""
    new = {"providerId": "anthropic", "authMode": "apiKey", "displayLabel": "Demo", "apiKey": key}
    with http(cloud) as bare:
        made = bare.post("/credentials", json=new)
        assert made.status_code == 201, made.text
        default = {"credentialId": made.json()["credential"]["id"], "modelId": "fermata-demo"}
        assert bare.put("/defaults/site", json=default).status_code == 200


@pytest.fixture(scope="session")
def desk(cloud: LocalCloud) -> LocalDesk:
    """To see what is stored."""
    return cloud.desk()


@pytest.fixture(scope="session")
def model(cloud: LocalCloud) -> Iterator[Model]:
    assert cloud.model is not None
    model = Model(cloud.model.url)
    yield model
    model.close()


@pytest.fixture
def faults(cloud: LocalCloud, faults_folder: Path) -> Iterator[Faults]:
    yield Faults(faults_folder)
    for left in faults_folder.iterdir():
        left.unlink()


@pytest.fixture
def new_talk(cloud: LocalCloud, desk: LocalDesk, model: Model) -> Iterator[Callable[..., Talk]]:
    """Makes conversations: of the local user, or of whoever the given claims name."""
    made: list[Talk] = []

    def make(**claims: object) -> Talk:
        made.append(Talk(cloud, desk, model, cloud.sign(**claims) if claims else cloud.token))
        return made[-1]

    yield make
    for talk in made:
        talk.close()


@pytest.fixture
def talk(new_talk: Callable[..., Talk]) -> Talk:
    return new_talk()


@pytest.fixture(scope="session")
def stranger(desk: LocalDesk) -> str:
    """A token with every capability, of another tenant's user with the same name."""
    return make_tenant(desk, "stranger", issuer="http://127.0.0.1/stranger").token(USER)


@pytest.fixture(scope="session")
def editors_token(desk: LocalDesk) -> str:
    """Of a tenant whose pages are Instatic's: they know neither `cancelled` nor retraction."""
    signer = make_tenant(desk, "editor", issuer="http://127.0.0.1/editor", dialect="instatic")
    everything = (*CAPABILITIES, *EDITOR)
    caller = Caller(tenant="editor", user="ada", capabilities=frozenset(everything))
    credential = keyring.create(desk, caller, "anthropic", "apiKey", "demo", "demo")
    defaults.set_default(desk, caller, "site", credential.id, "fermata-demo")
    return signer.token("ada", everything)


@pytest.fixture
def editor(cloud: LocalCloud, desk: LocalDesk, model: Model, editors_token: str) -> Iterator[Talk]:
    talk = Talk(cloud, desk, model, editors_token, tenant="editor")
    yield talk
    talk.close()


@pytest.fixture(scope="session")
def gateway(cloud: LocalCloud) -> str:
    """The emulator's own API Gateway, without the front door before it."""
    return f"{cloud.endpoint}/restapis/{cloud.output('ApiId')}/{cloud.output('StageName')}/_user_request_"
