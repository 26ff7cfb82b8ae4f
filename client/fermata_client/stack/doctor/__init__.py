"""Examine an account before a deployment, and a deployed stack after it: `fermata doctor` (decision 0245)."""
