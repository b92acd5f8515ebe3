"""Measurements behind the book's numbers: each command ``python -m measure.<room>.<name>`` writes its own JSON file.

The rooms: ``draws`` (numbers in the text, drawn with 20 seeds), ``speed``, ``packages`` (promises
tried on each package) and ``training`` (studies of trained models).
"""
