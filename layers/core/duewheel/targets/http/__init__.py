"""Call an HTTP endpoint."""
