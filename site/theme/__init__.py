"""What the book's theme gets wrong for a reader is mended here, in one file for each moment.

Any mending may go when its cause goes.
"""

from importlib import import_module

MOMENTS = ("sources", "trees", "pages", "finished")  # in the order of a build


def book_address(config):
    """Say where the built book lies: as configured, or where GitHub puts a repository's pages."""
    owner, name = config.html_theme_options["repository_url"].rstrip("/").split("/")[-2:]
    return (config.html_baseurl or f"https://{owner.lower()}.github.io/{name}").rstrip("/") + "/"


def setup(app):
    for moment in MOMENTS:
        import_module(f"theme.{moment}").setup(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
