"""Time travel for the tests of an application. Imports nothing: see `plugin`."""
