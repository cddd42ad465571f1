"""Calls of the HTTP interface, by kind: parse, call one workflow, shape the answer."""
