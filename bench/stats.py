"""Compute percentiles of measured times."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

NS_PER_MS = 1_000_000


@dataclass(frozen=True)
class LatencySamples:
    """Sorted samples in milliseconds."""

    ms: tuple[float, ...]

    @classmethod
    def from_samples(cls, ms: Iterable[float]) -> "LatencySamples":
        return cls(tuple(sorted(ms)))

    def percentile(self, share: float) -> float:
        """Return the smallest sample that at least this share of the samples does not exceed (nearest rank)."""
        return self.ms[max(0, math.ceil(share * len(self.ms)) - 1)]

    @property
    def p50(self) -> float:
        return self.percentile(0.50)

    @property
    def p95(self) -> float:
        return self.percentile(0.95)

    def to_json(self) -> dict[str, float]:
        return {"p50": round(self.p50, 1), "p95": round(self.p95, 1), "n": len(self.ms)}
