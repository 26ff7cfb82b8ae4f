"""What a token costs and how big a window is."""
