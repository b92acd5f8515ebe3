"""Draw the book's sampled numbers again, from twenty other seeds each.

``python -m measure.draws`` draws everything again and writes ``lowrank_tutor/data/draws.json``;
``python -m measure.draws 07`` redraws the numbers of chapter 7 alone and keeps the rest. Each
chapter has a module ``chapter_NN`` with one function, ``draw(seed)``, which returns its numbers by
name. A sentence in the book quotes the median, or says that it is about the draw shown.
"""
