"""Asking the cases of a set, in process or over HTTP."""
