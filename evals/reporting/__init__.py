"""Runs as tables, JUnit XML and pages with plots."""
