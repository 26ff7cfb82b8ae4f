"""The local cloud with a fault proxy before its emulator and a provider of its own."""

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

from local.cloud import LocalCloud
from tests.chaos.real.collected_evidence import find_running_executions
from tests.chaos.real.fault_injection import FaultInjector
from tests.chaos.real.fault_proxy import FaultProxy
from tests.chaos.real.provider import RealProvider, run_provider

SHORT_CLOCKS = {
    "HeartbeatSeconds": 6,
    "BrowserWaitSeconds": 30,
    "ReaderHeartbeatSeconds": 1,
    "ProviderStallSeconds": 3,
}
"""Template parameters with which recovery takes seconds instead of minutes."""
SHORT_RECOVERY = {"START_GRACE_SECONDS": 3, "STALLED_TURN_SECONDS": 20}
"""Environment variables for the same."""
MINUTE_SECONDS = 3.0
TENANT_NAME = re.compile(rb"chaos\d+x\d+")


@dataclass
class RealCloud:
    cloud: LocalCloud
    provider: RealProvider
    proxy: FaultProxy
    faults: FaultInjector = field(init=False)
    _replacing: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def kill_emulator(self) -> None:
        """Kill the emulated AWS, whatever it does, and start it again: it has what it has acknowledged."""
        async with self._replacing:
            self.faults.strike_all_owners()
            await asyncio.to_thread(self.cloud.kill_emulator)
            await asyncio.to_thread(self.cloud.start_emulator)

    async def stop_execution(self, turn: str) -> None:
        async with self._replacing:
            for name in await asyncio.to_thread(find_running_executions, self.cloud):
                if name.rpartition("-")[0] == turn:
                    await asyncio.to_thread(self.cloud.stop_execution, name)

    async def keep_front_door(self) -> None:
        """Start another front door whenever one was killed, as AWS starts another process of a function."""
        while True:
            if self.cloud.find_ended_process() == "the front door":
                async with self._replacing:
                    await asyncio.to_thread(self.cloud.restart_front_door)
            await asyncio.sleep(0.1)


@contextlib.asynccontextmanager
async def open_real_cloud(directory: Path) -> AsyncIterator[RealCloud]:
    """Start the provider and the local cloud, whose functions call AWS through the fault proxy."""
    with run_provider() as provider:
        proxy = FaultProxy(lambda: cloud.endpoint, lambda request, forward: real.faults.treat(request, forward))
        await proxy.start()
        endpoints = {f"AWS_ENDPOINT_URL_{name}": proxy.url for name in ("DYNAMODB", "S3", "KMS", "SFN")}
        urls = {
            "ProviderUrls": json.dumps({"anthropic": provider.url}),
            "CatalogueUrl": f"{provider.url}/api/v1/models",
        }
        cloud = LocalCloud(
            directory,
            keep_state=True,
            minute_seconds=MINUTE_SECONDS,
            real_api_key="chaos",
            parameters=SHORT_CLOCKS | urls,
            environment=SHORT_RECOVERY | endpoints,
        )
        real = RealCloud(cloud, provider, proxy)
        real.faults = FaultInjector(TENANT_NAME, real.kill_emulator, real.stop_execution)
        await asyncio.to_thread(cloud.__enter__)
        keeper = asyncio.create_task(real.keep_front_door())
        try:
            yield real
        finally:
            keeper.cancel()
            await asyncio.to_thread(cloud.__exit__, None, None, None)
            await proxy.close()
