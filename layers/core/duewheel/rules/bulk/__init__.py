"""Bulk operations: what is asked for, the pages of the work, and the marks that it leaves."""
