"""Let assistants outside of a turn call tools of the editor that their user has open (decision 0377)."""
