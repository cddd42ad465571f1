"""Time travel for the tests of an application. It imports no module: see `plugin`."""
