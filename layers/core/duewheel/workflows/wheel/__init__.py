"""Lead, dispatch what is due, and hand it over."""
