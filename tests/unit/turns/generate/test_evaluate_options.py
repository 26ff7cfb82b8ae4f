"""Questions that are decided by the probabilities of a model's next token, over real sockets (decision 0501)."""

import json
import math
from collections.abc import Iterator
from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.credentials.credential_store import create_credential
from fermata.domain.errors import BadGateway, InvalidRequest
from fermata.domain.model_decisions import DecisionQuestion
from fermata.domain.one_shot_generation import GenerateRequest
from fermata.drivers.transport.http_connection import HttpConnection
from fermata.turns.generate.evaluate_options import evaluate_questions
from tests.resources import resources_of_new_process
from tests.strict.model_lists import ModelListServer, run_model_list_server
from tests.unit.resource_fixtures import clock, resources, shared_resources
from tests.unit.turns.stage import ADA

__all__ = ["clock", "resources", "shared_resources"]
URGENT = DecisionQuestion(yesno="Is it urgent?")
TEAM = DecisionQuestion(choice="Which team?", options=("sales", "support"))
MOOD = DecisionQuestion(score="How content?", levels=("low", "middle", "high"))
CHAT, GEMINI = "/v1/chat/completions", "/v1beta/models/m:generateContent"


@pytest.fixture(scope="module")
def server() -> Iterator[ModelListServer]:
    with run_model_list_server() as server:
        yield server


@pytest.fixture
def process(resources: Resources, server: ModelListServer) -> Resources:
    server.requests.clear()
    urls = json.dumps({"openai": server.url, "gemini": server.url, "anthropic": server.url})
    return resources_of_new_process(resources, fermata_stage="local", provider_urls=urls)


def evaluate(
    process: Resources, server: ModelListServer, provider: str = "openai", **questions: DecisionQuestion
) -> dict[str, Any]:
    label = f"{provider} {' '.join(questions)}"[:60]
    credential = create_credential(process, ADA, provider, "apiKey", label, server.key).id
    asked = GenerateRequest(credential=credential, model="m", state={"mail": "Hello"}, questions=questions)
    connection = HttpConnection(stall_seconds=5, total_seconds=5)
    try:
        return evaluate_questions(process, ADA, asked, connection)
    finally:
        connection.close()


def build_chat_answer(**shares: float) -> dict[str, Any]:
    top = [{"token": token, "logprob": math.log(share)} for token, share in shares.items()]
    usage = {"prompt_tokens": 20, "completion_tokens": 1}
    return {"choices": [{"logprobs": {"content": [{"top_logprobs": top}]}}], "usage": usage}


def list_ledger(process: Resources) -> list[tuple[Any, ...]]:
    month = f"t#{ADA.tenant}#{process.clock.now_iso()[:7]}"
    rows = process.tables.query_index(process.settings.usage_table, "byTime", ("gpk", month))
    return [(row["prompt"], row["billable"], row["outcome"]) for row in rows if "prompt" in row]


def test_decide_02_the_probability_of_yes_is_the_models_and_confidence_follows_from_it(
    process: Resources, server: ModelListServer
) -> None:
    server.set_response(CHAT, build_chat_answer(A=0.27, B=0.63, The=0.1))
    decided = evaluate(process, server, urgent=URGENT)
    assert decided["urgent"] == {"answer": False, "probability": 0.3, "confidence": 0.7}
    assert (decided["usage"]["inputTokens"], decided["usage"]["outputTokens"]) == (20, 1)
    body = server.requests[-1].body
    assert (body["logprobs"], body["top_logprobs"], body["max_completion_tokens"]) == (True, 20, 1)
    assert "A) yes\nB) no" in body["messages"][1]["content"]
    assert list_ledger(process) == [(20, True, "ok")]


def test_options_and_levels_have_a_share_each_however_their_tokens_are_written(
    process: Resources, server: ModelListServer
) -> None:
    server.set_response(CHAT, build_chat_answer(**{" A": 0.4, "a": 0.2, "B)": 0.2, "**C": 0.2}))
    decided = evaluate(process, server, team=TEAM, mood=MOOD)
    assert decided["team"] == {
        "choice": "sales", "confidence": 0.75, "probabilities": {"sales": 0.75, "support": 0.25},
    }  # fmt: skip
    assert decided["mood"] == {
        "level": "low", "index": 0, "score": 0.3, "confidence": 0.6,
        "probabilities": {"low": 0.6, "middle": 0.2, "high": 0.2},
    }  # fmt: skip
    assert len(list_ledger(process)) == 2


def test_decide_01_a_model_that_wants_to_say_something_else_has_not_answered(
    process: Resources, server: ModelListServer
) -> None:
    server.set_response(CHAT, build_chat_answer(A=0.2, B=0.1, Sorry=0.7))
    decided = evaluate(process, server, team=TEAM, urgent=URGENT)
    assert decided["team"] == {"choice": None, "confidence": None, "probabilities": None}
    assert decided["urgent"] == {"answer": None, "probability": None, "confidence": None}


def test_gemini_is_asked_in_its_own_protocol(process: Resources, server: ModelListServer) -> None:
    top = [{"token": "B", "logProbability": math.log(0.9)}, {"token": "A", "logProbability": math.log(0.1)}]
    answer = {"candidates": [{"logprobsResult": {"topCandidates": [{"candidates": top}]}}]}
    server.set_response(GEMINI, answer)
    assert evaluate(process, server, "gemini", team=TEAM)["team"]["choice"] == "support"
    assert server.requests[-1].body["generationConfig"]["responseLogprobs"] is True


@pytest.mark.parametrize(
    "answer",
    [
        {},
        [],
        {"choices": [{"logprobs": None}]},
        {"choices": [{"logprobs": {"content": [{"top_logprobs": [{"token": 1}]}]}}]},
    ],
)
def test_an_answer_without_probabilities_is_told_in_words(
    process: Resources, server: ModelListServer, answer: Any
) -> None:
    server.set_response(CHAT, answer)
    with pytest.raises(BadGateway, match="did not tell the probabilities"):
        evaluate(process, server, team=TEAM)
    assert [row[1:] for row in list_ledger(process)] == [(False, "provider_error")]


def test_what_cannot_be_evaluated_is_refused_before_anything_is_sent(
    process: Resources, server: ModelListServer
) -> None:
    many = DecisionQuestion(choice="Which?", options=tuple(f"option {number}" for number in range(21)))
    for provider, questions, says in (
        ("anthropic", {"team": TEAM}, "tells no probabilities"),
        ("openai", {"x": many}, "more than 20 options"),
        ("openai", {f"q{number}": TEAM for number in range(21)}, "20 questions at most"),
    ):
        with pytest.raises(InvalidRequest, match=says):
            evaluate(process, server, provider, **questions)
    assert not server.requests
