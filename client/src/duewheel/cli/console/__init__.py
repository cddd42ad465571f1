"""`duewheel console`: a proxy on this machine that calls the service with its user's
credentials."""
