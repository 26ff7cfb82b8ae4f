"""Store content: models, documents, change sets. It knows nothing of agents."""
