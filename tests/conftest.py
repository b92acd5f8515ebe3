"""Settings of all tests: drawn examples are the same in every run, and a slow machine may take its time over them."""

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")
