"""What the handlers run on, built once per process from the environment, never at import.

A module for each function, so that one pays at its cold start only for what it uses, and
`process`, which they share.
"""
