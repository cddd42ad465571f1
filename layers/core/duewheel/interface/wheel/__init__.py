"""Answers on the wheel and its audit."""
