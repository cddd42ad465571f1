"""Pointers, headers of seconds, load estimates, and the ways to the notifiers."""
