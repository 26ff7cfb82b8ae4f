"""End turns: done, failed or cancelled, each exactly once."""
