"""Call AWS services through the SDK."""
