"""`duewheel console`: a proxy on this machine that asks the service in its caller's name."""
