"""Tell the webhooks of a tenant about tool requests, approvals and ends of its turns, and about its content."""
