"""A shop whose unpaid orders close after a day."""
