"""Who must wait: the line of a business or a flow key, and its record."""
