"""Percentiles of measured samples."""

from bench.stats import LatencySamples


def test_a_percentile_is_a_sample_that_was_measured() -> None:
    samples = LatencySamples.from_samples([5, 1, 4, 2, 3])
    assert (samples.p50, samples.p95) == (3, 5)
    assert LatencySamples.from_samples([7]).p50 == LatencySamples.from_samples([7]).p95 == 7
