"""Serve clients of the planner: sessions and their drafts, chats in two phases, history and publishing."""
