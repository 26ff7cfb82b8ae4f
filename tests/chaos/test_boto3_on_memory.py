"""boto3's clients get from memory what the simulation gets, which `test_memory_dynamodb.py` compares with moto."""

import random
from collections.abc import Iterator
from typing import Any

import pytest
from moto import mock_aws

from tests.chaos.memory_aws.dynamodb import MemoryDynamoDB, MemoryTable
from tests.chaos.test_memory_dynamodb import SEEDS, STEPS, call, contents, create_client_with_table, draw_request
from tests.dynamodb_in_memory import answer_dynamodb_from_memory
from tests.quick_suite_samples import sample_for_quick_suite


@pytest.fixture
def memory_client() -> Iterator[Any]:
    """A client of boto3 whose requests are answered from memory, as those of the quick suite."""
    with pytest.MonkeyPatch.context() as patch, mock_aws():
        patch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
        answer_dynamodb_from_memory(patch)
        yield create_client_with_table()


@pytest.mark.parametrize("seed", sample_for_quick_suite(SEEDS, every=8))
def test_a_client_of_boto3_gets_the_answers_of_the_memory(memory_client: Any, seed: int) -> None:
    draw, memory = random.Random(seed), MemoryDynamoDB([MemoryTable("t", {"byClaim": ("claim", "sk")})])
    for _ in range(STEPS):
        operation, request = draw_request(draw)
        assert call(memory_client, operation, request) == call(memory, operation, request)
        assert contents(memory_client) == contents(memory)
