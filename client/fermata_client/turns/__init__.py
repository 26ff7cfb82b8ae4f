"""One turn as a client follows it: run it, fold its events into a view, report its outcome."""
