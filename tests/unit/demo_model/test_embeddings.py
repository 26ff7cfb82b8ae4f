"""The demo model turns texts into vectors that say what they mean, without a network, and only when it is asked."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from fermata.aws.resources import Resources
from fermata.content.content_space import ContentSpace, SpaceKey
from fermata.content.documents.change_document import create_document
from fermata.content.documents.document import ContentAuthor, DocumentContent
from fermata.content.model_store import create_space
from fermata.content.search.search_catalogue import forget_catalogues
from fermata.content.search.search_index import IndexSettings
from fermata.content.search.search_space import search_space
from fermata.credentials.credential_store import create_credential
from fermata.domain.errors import ProviderError
from fermata.turns.generate.embed_texts import open_embedder
from fermata.turns.index_content import choose_search_model, index_space_part
from local.demo_model.embedding_route import EMBEDDING_MODEL, MAX_REQUEST_CHARS, MAX_TEXT_CHARS, MAX_TEXTS
from tests.resources import resources_of_new_process
from tests.unit.resource_fixtures import clock, resources, shared_resources
from tests.unit.turns.stage import ADA

__all__ = ["clock", "resources", "shared_resources"]
ROOT = Path(__file__).parents[3]
PATH = "/v1/embeddings"
SPACE = SpaceKey(ADA.tenant, "garage")
TITLES = ("Tulips and roses", "Rye bread", "Automobile", "Tax forms", "Opening hours")

SERVE_WITHOUT_NETWORK = """
import json, socket, sys
def refuse(*_): raise AssertionError("it asks the network")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
from local.demo_model.response_stream import ResponsePace
from local.demo_model.server import DemoModelServer
import anyio
from local.demo_model.embedding_route import EMBEDDING_MODEL, answer_embeddings
heavy = ("tokenizers", "safetensors", "wordllama", "numpy")
before = [name for name in heavy if name in sys.modules]
body = anyio.run(answer_embeddings, {"model": EMBEDDING_MODEL, "input": "car"})
after = [name for name in heavy if name in sys.modules]
print(json.dumps([before, after, len(body["data"][0]["embedding"])]))
"""


def test_nothing_is_loaded_before_the_first_text_and_then_nothing_is_asked_of_the_network() -> None:
    source = SERVE_WITHOUT_NETWORK
    process = subprocess.run([sys.executable, "-c", source], cwd=ROOT, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    assert json.loads(process.stdout) == [[], ["tokenizers", "safetensors"], 256]


def test_a_search_for_car_finds_the_automobile_before_all_that_means_something_else(
    resources: Resources, url: str, key: str
) -> None:
    forget_catalogues()
    process = resources_of_new_process(
        resources, fermata_stage="local", provider_urls=json.dumps({"openai": url, "openrouter": f"{url}/api"})
    )
    create_space(process, SPACE, ContentSpace(), ContentAuthor(ADA.user))
    for number, title in enumerate(TITLES):
        page = DocumentContent(slug=f"p-{number}", title=title)
        create_document(process, SPACE, "page", ContentAuthor(ADA.user), page, document_id=f"p-{number}")
    index_garage(process)
    assert "Automobile" not in find_titles(process, "car")  # no letters say so
    for provider in ("openai", "openrouter"):
        credential = create_credential(process, ADA, provider, "apiKey", "Vectors", key).id
        with pytest.raises(ProviderError, match="does not exist"):
            choose_search_model(process, SPACE, ADA, IndexSettings(credential, "text-embedding-3-small"))
        choose_search_model(process, SPACE, ADA, IndexSettings(credential, EMBEDDING_MODEL))
        index_garage(process)
        assert [find_titles(process, query)[0] for query in ("car", "vehicle", "flowers")] == [
            "Automobile",
            "Automobile",
            "Tulips and roses",
        ]


def index_garage(process: Resources) -> None:
    part = index_space_part(process, SPACE, ADA)
    while part.cursor:
        part = index_space_part(process, SPACE, ADA, part.cursor)


def find_titles(process: Resources, query: str) -> list[str]:
    found = search_space(process, SPACE, query, open_embedder(process, SPACE, ADA))
    return [one.entry.title for one in found if one.entry.type == "page"]


def test_openais_own_client_reads_the_vectors_as_numbers_and_as_bytes(url: str, key: str) -> None:
    with openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0) as client:
        vectors = client.embeddings.create(model=EMBEDDING_MODEL, input=["car", "automobile", "rye bread"])
        same = client.embeddings.create(model=EMBEDDING_MODEL, input="car", encoding_format="float")
    car, automobile, bread = (one.embedding for one in vectors.data)
    assert vectors.usage.prompt_tokens == vectors.usage.total_tokens > 3
    assert car == pytest.approx(same.data[0].embedding, abs=1e-6)
    assert sum(value * value for value in car) == pytest.approx(1)
    assert compare(car, automobile) > 0.5 > 0.2 > compare(car, bread)


def compare(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def test_texts_of_all_kinds_have_vectors(http: httpx.Client) -> None:
    texts = ["\ud83d", "🥐", " ", "a\u0000b", "ґанок", "x" * MAX_TEXT_CHARS]
    answer = http.post(PATH, content=json.dumps({"model": EMBEDDING_MODEL, "input": texts}))
    assert answer.status_code == 200, answer.text
    assert [one["index"] for one in answer.json()["data"]] == [*range(len(texts))]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"input": ""}, "empty string"),
        ({"input": []}, f"1 to {MAX_TEXTS} texts"),
        ({"input": ["a"] * (MAX_TEXTS + 1)}, f"1 to {MAX_TEXTS} texts"),
        ({"input": [[1, 2]]}, "Tokens are not read"),
        ({"input": None}, "must be a text"),
        ({"input": "a" * (MAX_TEXT_CHARS + 1)}, str(MAX_TEXT_CHARS)),
        ({"input": ["a" * MAX_TEXT_CHARS] * 31}, str(MAX_REQUEST_CHARS)),
        ({"model": ""}, "model parameter"),
        ({"dimensions": 64}, "256"),
        ({"encoding_format": "hex"}, "base64"),
        ({"inputs": "a"}, "Unrecognized request argument"),
    ],
)
def test_what_it_cannot_embed_is_refused_with_a_reason(change: dict[str, Any], told: str, http: httpx.Client) -> None:
    answer = http.post(PATH, json={"model": EMBEDDING_MODEL, "input": "car"} | change)
    assert (answer.status_code, told in answer.json()["error"]["message"]) == (400, True), answer.text
