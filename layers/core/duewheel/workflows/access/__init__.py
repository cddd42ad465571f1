"""Issue and check API keys."""
