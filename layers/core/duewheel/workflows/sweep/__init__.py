"""Find what was lost, audit, keep the statistics."""
