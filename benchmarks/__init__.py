"""Measurements behind the book's figures: ``python -m benchmarks.<name>`` prints a table and writes its JSON."""
