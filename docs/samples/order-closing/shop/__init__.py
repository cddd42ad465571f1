"""A shop whose orders close when nobody has paid within a day."""
