"""Count the AWS calls of a browser round, of opening a provider's key, and of listing conversations."""

from dataclasses import replace

import httpx

from bench.aws_calls import record_aws_calls
from bench.harness import BenchHarness
from bench.latency import BROWSER_TOOL_STEP, FINAL_STEP, wait_until_settled
from bench.report import ResultRow
from fermata.aws.clock import Clock
from fermata.credentials import scope_defaults
from fermata.credentials.open_credential import open_api_key
from local import seed

_BROWSER_ROUNDS = 3
MAX_BROWSER_ROUND_REQUESTS = 10
KEY_CACHE_SECONDS = 300
REPEATED_OPENS = 100
EXPECTED_KMS_CALLS = [1, 0, 1]
EXPECTED_LIST_CALLS = {"dynamodb:Query": 1}
LISTING_RECORDINGS = 10


class ShiftedClock(Clock):
    """A clock whose monotonic time is ahead by `shift_seconds`."""

    shift_seconds = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.shift_seconds


def measure_browser_round_requests(harness: BenchHarness) -> ResultRow:
    """Count the DynamoDB requests from one answer of the browser to its next, without those of streaming."""
    prompt = harness.script_model("one-more", [BROWSER_TOOL_STEP] * _BROWSER_ROUNDS + [FINAL_STEP])
    harness.run_turn(prompt)
    with record_aws_calls(harness.cloud.endpoint) as calls:
        turn = harness.run_turn(prompt)
        wait_until_settled()
    first_answer_ns, second_answer_ns = turn.answered_ns[:2]
    round_calls = calls.of_kind("step").between(first_answer_ns, second_answer_ns)
    count = round_calls.count_for_service("dynamodb")
    return ResultRow(
        "requests.browser",
        "DynamoDB requests per browser round",
        f"≤ {MAX_BROWSER_ROUND_REQUESTS}",
        f"{count}",
        count <= MAX_BROWSER_ROUND_REQUESTS,
        dict(round_calls.count_by_name()),
    )


def measure_kms_calls(harness: BenchHarness) -> ResultRow:
    """Count the KMS calls to open a key: in a new process, a hundred times within five minutes, and after them."""
    clock = ShiftedClock()
    resources = replace(harness.cloud.resources(), clock=clock)
    default = scope_defaults.read_default(resources, seed.TENANT, "site")
    assert default is not None
    counts: list[int] = []
    phases = ((1, 0.0), (REPEATED_OPENS, KEY_CACHE_SECONDS - 60.0), (1, KEY_CACHE_SECONDS + 1.0))
    for open_count, end_seconds in phases:
        with record_aws_calls(harness.cloud.endpoint) as calls:
            for number in range(open_count):
                clock.shift_seconds = max(clock.shift_seconds, end_seconds * (number + 1) / open_count)
                open_api_key(resources, seed.TENANT, default.credential_id, 1)
        counts.append(calls.count_for_service("kms"))
    title = f"KMS calls to open a key: cold, {REPEATED_OPENS} times within five minutes, after them"
    return ResultRow("credential", title, _join(EXPECTED_KMS_CALLS), _join(counts), counts == EXPECTED_KMS_CALLS)


def _join(counts: list[int]) -> str:
    return ", ".join(map(str, counts))


def measure_conversation_list_calls(harness: BenchHarness, conversation_count: int) -> ResultRow:
    """Count the DynamoDB requests for one page of a caller who has at least so many conversations.

    A recording can contain requests of functions that run in the background, so the smallest of several counts.
    """
    for _ in range(conversation_count):
        harness.create_conversation()
    listed_count = _count_listed(harness)
    recordings: list[dict[str, int]] = []
    for _ in range(LISTING_RECORDINGS):
        with record_aws_calls(harness.cloud.endpoint) as calls:
            assert _count_listed(harness) == listed_count
        recordings.append(calls.count_by_name("dynamodb"))
    call_counts = min(recordings, key=lambda counts: sum(counts.values()))
    result = " and ".join(f"{count} {name.partition(':')[2]}" for name, count in call_counts.items())
    return ResultRow(
        "conversations",
        "DynamoDB requests to list conversations",
        "1 Query",
        result,
        call_counts == EXPECTED_LIST_CALLS,
        {"listed": listed_count, "requests": call_counts},
    )


def _count_listed(harness: BenchHarness) -> int:
    url = f"{harness.cloud.url}/admin/api/ai/conversations"
    headers = {"authorization": f"Bearer {harness.cloud.token}"}
    response = httpx.get(url, params={"scope": "site"}, headers=headers, trust_env=False)
    return len(response.raise_for_status().json()["conversations"])
