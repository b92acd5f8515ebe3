"""A visit to the built site, in a browser that knows nothing of the reader yet."""

import json

import pytest


@pytest.fixture
def visit(browser, address):
    """Open pages, with what the browser has ``kept`` for a key; an error on one of them fails the
    test. Without ``maths``, on which half of their time would go, formulas stay TeX.
    """
    contexts, errors = [], []

    def open_page(path, *scripts, kept=None, context=None, base=address, maths=False, **settings):
        if context is None:
            context = browser.new_context(
                bypass_csp=True, **settings
            )  # which forbids to wait for what a string says
            contexts.append(context)
            if not maths:
                context.route("**/mathjax/**", lambda route: route.abort())
            for script in scripts:
                context.add_init_script(script)
            for key, value in (kept or {}).items():
                text = json.dumps(json.dumps(value))
                context.add_init_script(
                    f"if (!localStorage['{key}']) localStorage['{key}'] = {text}"
                )
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"{base}/{path}")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert errors == []
