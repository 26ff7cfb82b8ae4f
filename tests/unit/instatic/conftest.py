from collections.abc import Callable, Iterator

import pytest

from fermata.conversations import conversation_store
from tests.tenant_tokens import TokenSigner, make_tenant
from tests.unit.instatic.browser import Browser
from tests.unit.instatic.live_service import AdjustableClock, run_service
from tests.unit.instatic.schemas import GENERATIONS, NEWEST
from tests.unit.turns.conftest import MakeStage, shared_resources, staged
from tests.unit.turns.stage import ADA, Stage

__all__ = ["shared_resources", "staged"]

NAMES = {"0.0.6": ("insertHtml", "list_documents"), "0.0.8": ("site_insert_html", "site_list_documents")}
NAMES[NEWEST] = NAMES["0.0.8"]
QUICK = {
    "fermata_stage": "local",
    "abandoned_seconds": 0.3,
    "poll_ms": 10,
    "idle_poll_ms": 20,
    "flush_ms": 5,
    "reader_heartbeat_seconds": 0.05,
}
Open = Callable[..., Browser]


@pytest.fixture
def clock() -> AdjustableClock:
    return AdjustableClock()


@pytest.fixture
def quick() -> dict[str, object]:
    """The settings of the service; a test class may have others."""
    return dict(QUICK)


@pytest.fixture
def stage(staged: MakeStage, quick: dict[str, object]) -> Stage:
    return staged(**quick)


@pytest.fixture
def service(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with run_service(stage, monkeypatch) as url:
        yield url


OLDER_GENERATIONS = [name for name in GENERATIONS if name != NEWEST]


@pytest.fixture(params=[*(pytest.param(name, marks=pytest.mark.exhaustive) for name in OLDER_GENERATIONS), NEWEST])
def generation(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def bakery(stage: Stage, generation: str) -> TokenSigner:
    """A tenant whose editor is of this generation."""
    names = "seed" if generation == "0.0.6" else "prefixed"
    return make_tenant(stage.resources, dialect="instatic", tool_names=names)


@pytest.fixture
def another_browser(service: str, bakery: TokenSigner, generation: str) -> Iterator[Open]:
    opened: list[Browser] = []

    def make(**claims: object) -> Browser:
        granted = {"capabilities": tuple(sorted(ADA.capabilities))} | claims
        opened.append(Browser(service, generation, bakery.sign_token(**granted), bakery.origin))
        return opened[-1]

    yield make
    for browser in opened:
        browser.http.close()


@pytest.fixture
def browser(another_browser: Open) -> Browser:
    return another_browser()


@pytest.fixture
def conversation(stage: Stage, browser: Browser) -> str:
    conversation_id = browser.create_conversation(stage.credential.id, "model-1")
    stage.conversation = conversation_store.get_conversation(stage.resources, ADA, conversation_id)
    return conversation_id


@pytest.fixture
def insert(generation: str) -> str:
    """The name that the editor has for the tool that inserts HTML."""
    return NAMES[generation][0]
