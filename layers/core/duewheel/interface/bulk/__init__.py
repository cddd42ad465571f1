"""Bulk operations in answers."""
