"""Export and erase what is stored about a conversation, a user or a tenant."""
