"""Read turns: their status, their journal, and their events as they are written."""
