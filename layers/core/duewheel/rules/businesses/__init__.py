"""Settings of a business, its limits, its lane and its health."""
