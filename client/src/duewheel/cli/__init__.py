"""The command line (extra `cli`): the client's calls, for people and for scripts."""
