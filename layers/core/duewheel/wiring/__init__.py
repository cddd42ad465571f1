"""The parts of the handlers, built once per process from the environment, never at import.

A module for each function, so that a cold start pays only for what the function uses, and
`process`, which they share.
"""
