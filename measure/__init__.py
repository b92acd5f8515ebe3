"""Measurements behind the book's numbers, each of which writes its own JSON file.

The commands are ``python -m measure.<room>.<name>``. The rooms: ``draws`` (numbers in the text,
drawn with 20 seeds), ``speed``, ``real_model``, and ``training`` (studies of trained models).
"""
