"""Store the draft of a session: pages with their history, the plan that waits for its user, and what is published."""
