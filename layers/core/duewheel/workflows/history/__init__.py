"""Read who changed what."""
