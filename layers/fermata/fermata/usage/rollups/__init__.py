"""Rollups: usage summed by day and quarter of an hour, fed by the stream of the ledger."""
