# make book    build the site          make test      every test            make check   format, lint, types, stale files
# make serve   build and serve it      make notebooks derive the notebooks   make bench   measure (slow, writes data)
# make pdf     print the whole book    make offline   the site as an archive that opens from a folder

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready
SITE := _build/html
# Jupyter Book says "-W -n": every warning, and every reference to nowhere, fails the build.
BUILD := $(BIN)/jupyter-book build . -W -n --keep-going
ARCHIVE := dist/low-rank-attention

.PHONY: book serve pdf offline test test-colab colab-image check notebooks bench mutants picture clean

book: $(READY)
	$(BUILD)
	@echo "The book is ready, $$(du -sm $(SITE) | cut -f1) MB: $(CURDIR)/$(SITE)/index.html"

serve: book
	$(BIN)/python -m http.server 8000 --bind 127.0.0.1 --directory $(SITE)

pdf: book
	$(BUILD) --builder custom --custom-builder singlehtml
	$(BIN)/python tools/print_book.py

offline: book
	$(BIN)/python -c 'import shutil; print(shutil.make_archive("$(ARCHIVE)", "zip", "$(SITE)"))'

test: book
	$(BIN)/python -m pytest

test-colab: $(READY)
	$(BIN)/python -m pytest tests/test_notebooks.py -m colab

# Inside Colab's own image (see .github/workflows/colab.yml): its Python, its versions, an empty folder.
colab-image:
	python3 -m pip install --quiet --no-deps .
	folder=$$(mktemp -d) && cp book/*.ipynb $$folder && cd $$folder && \
	for notebook in *.ipynb; do echo "$$notebook" && jupyter execute "$$notebook" || exit 1; done

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python tools/export_notebooks.py --check

notebooks: $(READY)
	$(BIN)/ruff format .
	$(BIN)/python tools/export_notebooks.py

bench: $(READY)
	$(BIN)/python -m benchmarks.svd
	$(BIN)/python -m benchmarks.contract
	$(BIN)/python -m benchmarks.linformer --device cpu

picture: book
	$(BIN)/python tools/picture.py

mutants: $(READY)
	$(BIN)/mutmut run

clean:
	rm -rf .venv* _build dist build mutants *.egg-info

# The environment is made once, and again when its pins change.
$(READY): requirements.txt pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12 book")'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --requirement requirements.txt
	@touch $@
