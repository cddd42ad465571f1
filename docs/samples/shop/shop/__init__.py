"""A small shop that leaves all that happens later to Duewheel."""
