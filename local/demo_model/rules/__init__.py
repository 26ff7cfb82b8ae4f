"""Rules that decide what the demo model answers, from the request alone."""
