"""Takes one prompt from asked to done. The only orchestrator."""
