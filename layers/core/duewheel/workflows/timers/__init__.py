"""Create, change and plan timers."""
