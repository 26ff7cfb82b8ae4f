"""What is asked of AWS to open a provider's key, and to list somebody's conversations."""

from dataclasses import replace

import httpx

from bench.requests import recording
from bench.stage import Stage
from bench.table import Row
from fermata.aws.clock import Clock
from fermata.credentials import defaults, keyring
from local import seed

CACHED_SECONDS, OPENED = 300, 100


class Ahead(Clock):
    """The stopwatch, set forward."""

    seconds = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.seconds


def credential_open(stage: Stage) -> Row:
    """By a process that knows nothing yet, then again and again for five minutes, and once more after that."""
    clock = Ahead()
    desk = replace(stage.cloud.desk(), clock=clock)
    default = defaults.read(desk, seed.TENANT, "site")
    assert default is not None
    counts = []
    for times, seconds in ((1, 0.0), (OPENED, CACHED_SECONDS - 60.0), (1, CACHED_SECONDS + 1.0)):
        with recording(stage.cloud.endpoint) as requests:
            for number in range(times):
                clock.seconds = max(clock.seconds, seconds * (number + 1) / times)
                keyring.open_key(desk, seed.TENANT, default.credential_id, 1)
        counts.append(requests.count("kms"))
    what = f"KMS calls to open a key: cold, {OPENED} times within five minutes, after them"
    return Row("credential", what, "1, 0, 1", ", ".join(map(str, counts)), counts == [1, 0, 1])


def conversation_list(stage: Stage, count: int) -> Row:
    """One page of somebody who has at least so many."""
    for _ in range(count):
        stage.conversation()
    listed = _listed(stage)
    with recording(stage.cloud.endpoint) as requests:
        assert _listed(stage) == listed
    found = requests.by_name("dynamodb")
    numbers = {"listed": listed, "requests": found}
    result = " and ".join(f"{times} {name.partition(':')[2]}" for name, times in found.items())
    is_met = found == {"dynamodb:Query": 1}
    return Row("conversations", "DynamoDB requests to list conversations", "1 Query", result, is_met, numbers)


def _listed(stage: Stage) -> int:
    url, headers = f"{stage.cloud.url}/admin/api/ai/conversations", {"authorization": f"Bearer {stage.cloud.token}"}
    answer = httpx.get(url, params={"scope": "site"}, headers=headers, trust_env=False)
    return len(answer.raise_for_status().json()["conversations"])
