"""Page leases and parked items."""
