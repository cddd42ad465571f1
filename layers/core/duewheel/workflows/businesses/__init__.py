"""Configure businesses and limit what they create."""
