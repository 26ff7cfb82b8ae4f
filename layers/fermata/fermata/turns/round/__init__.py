"""Work on a turn whenever the workflow invokes the round or the hold function."""
