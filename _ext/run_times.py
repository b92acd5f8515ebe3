"""Tabulate how long each page's cells took, in plain words; MyST-NB's own table names files and its cache."""

from docutils import nodes
from myst_nb.ext.execution_tables import ExecutionStatsNode
from myst_nb.sphinx_ import NbMetadataCollector
from sphinx.transforms.post_transforms import SphinxPostTransform


class TimesInWords(SphinxPostTransform):
    """Writes a page's title, which leads to it, and its seconds; in the order of the contents."""

    default_priority = 7  # MyST-NB fills in its own table at 8

    def run(self, **kwargs):
        for place in list(self.document.findall(ExecutionStatsNode)):
            place.replace_self(self.table())

    def table(self):
        ran = NbMetadataCollector.get_doc_data(self.env)
        body = nodes.tbody()
        for docname in self.env.toctree_includes[self.env.config.root_doc]:
            seconds = ran[docname].get("exec_data", {}).get("runtime") if docname in ran else None
            if seconds is not None:
                body += _row(self.link(docname), nodes.Text(f"{seconds:.1f}"))
        head = nodes.thead("", _row(nodes.Text("page"), nodes.Text("seconds")))
        columns = [nodes.colspec(colwidth=width) for width in (80, 20)]
        return nodes.table("", nodes.tgroup("", *columns, head, body, cols=2), classes=["colwidths-auto"])

    def link(self, docname):
        number = self.env.toc_secnumbers.get(docname, {}).get("", ())
        words = f"{'.'.join(map(str, number))}. " if number else ""
        uri = self.app.builder.get_relative_uri(self.env.docname, docname)
        return nodes.reference("", words + self.env.titles[docname].astext(), internal=True, refuri=uri)


def _row(name, seconds):
    cells = nodes.paragraph("", "", name), nodes.paragraph("", "", seconds)
    return nodes.row("", nodes.entry("", cells[0]), nodes.entry("", cells[1], classes=["text-right"]))


def setup(app):
    app.add_post_transform(TimesInWords)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
