"""What is asked of AWS to open a provider's key, and to list somebody's conversations."""

from dataclasses import replace

import httpx

from bench.aws_calls import record_aws_calls
from bench.harness import BenchHarness
from bench.report import ResultRow
from fermata.aws.clock import Clock
from fermata.credentials import credential_store, scope_defaults
from local import seed

CACHED_SECONDS, REPEATED_OPENS = 300, 100


class ShiftedClock(Clock):
    """The stopwatch, set forward."""

    seconds = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.seconds


def measure_kms_calls(stage: BenchHarness) -> ResultRow:
    """By a process that knows nothing yet, then again and again for five minutes, and once more after that."""
    clock = ShiftedClock()
    resources = replace(stage.cloud.resources(), clock=clock)
    default = scope_defaults.read_default(resources, seed.TENANT, "site")
    assert default is not None
    counts = []
    for times, seconds in ((1, 0.0), (REPEATED_OPENS, CACHED_SECONDS - 60.0), (1, CACHED_SECONDS + 1.0)):
        with record_aws_calls(stage.cloud.endpoint) as requests:
            for number in range(times):
                clock.seconds = max(clock.seconds, seconds * (number + 1) / times)
                credential_store.open_api_key(resources, seed.TENANT, default.credential_id, 1)
        counts.append(requests.count_for_service("kms"))
    what = f"KMS calls to open a key: cold, {REPEATED_OPENS} times within five minutes, after them"
    return ResultRow("credential", what, "1, 0, 1", ", ".join(map(str, counts)), counts == [1, 0, 1])


def measure_conversation_list_calls(stage: BenchHarness, count: int) -> ResultRow:
    """One page of somebody who has at least so many."""
    for _ in range(count):
        stage.create_conversation()
    listed = _listed(stage)
    with record_aws_calls(stage.cloud.endpoint) as requests:
        assert _listed(stage) == listed
    found = requests.count_by_name("dynamodb")
    numbers = {"listed": listed, "requests": found}
    result = " and ".join(f"{times} {name.partition(':')[2]}" for name, times in found.items())
    is_met = found == {"dynamodb:Query": 1}
    return ResultRow("conversations", "DynamoDB requests to list conversations", "1 Query", result, is_met, numbers)


def _listed(stage: BenchHarness) -> int:
    url, headers = f"{stage.cloud.url}/admin/api/ai/conversations", {"authorization": f"Bearer {stage.cloud.token}"}
    answer = httpx.get(url, params={"scope": "site"}, headers=headers, trust_env=False)
    return len(answer.raise_for_status().json()["conversations"])
