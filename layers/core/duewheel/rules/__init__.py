"""Pure decisions: no clock, no AWS, no randomness; every instant is an argument."""
