"""Call the endpoints that an agent names at points of its turns: while they run, and before they end."""
