"""Slices of a second as the sweep reads them, and statistics by the minute."""
