"""Things that go wrong by chance."""
