"""Businesses in answers."""
