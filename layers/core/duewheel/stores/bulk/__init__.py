"""Records of bulk operations."""
