"""Callbacks to AWS services: each target is one module, and `registry` names them all."""
