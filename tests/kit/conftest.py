"""The hands that move a figure."""

from hands import *  # noqa: F403
