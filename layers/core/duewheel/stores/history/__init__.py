"""Records of changes."""
