"""Timers in answers, also to xTimer clients."""
