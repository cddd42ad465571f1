"""The whole stack on one machine: the template's resources and the functions, unchanged."""
