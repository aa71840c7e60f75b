"""Whole models: what is called with a batch."""
