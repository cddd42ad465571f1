"""Cron expressions, in the two dialects that are read."""
