# make book    build the site          make test      run every test         make check   format, lint, types, stale files
# make serve   build and serve it      make notebooks derive the notebooks   make bench   measure (slow, writes data)
# make pdf     print the whole book    make offline   pack the site into an archive that opens from a folder
# make test-newest   test the mathematics with the newest PyTorch and NumPy; test-lowest: with the oldest allowed
# make plain-sphinx  build the site with the newest Sphinx and without Jupyter Book, into _build/sphinx
# make pins    compile requirements*.txt from requirements*.in; ARGS=--upgrade updates all of them

PYTHON ?= python3
export PYTHON # recipes read it as a shell variable, so that no folder name can run as a command
BIN := .venv/bin
# Two stamps, so that the first `make book` waits only for what the book needs.
READY := .venv/ready
READY_DEV := .venv/ready-dev
# Without compiling: modules are compiled when they are first imported, and only a third of them ever is.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
NETWORK := $(BIN)/python -m pip index versions pip --retries 0 --timeout 9 >/dev/null 2>&1 || \
  echo "No network: pip cannot reach its package index." >&2; exit 1
SITE := _build/html
UNFINISHED := _build/unfinished
# Two runs at once would delete each other's files. The lock ends with the last process that has the file open, even if
# that is killed.
ALONE := exec 9>.venv.lock || exit 1; "$$PYTHON" -c "$$LOCK" || exit 1;
# -W -n: every warning, and every reference to nowhere, fails the build.
BUILD := $(BIN)/jupyter-book build . -W -n --keep-going
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version=3.11.2 --no-annotate $(ARGS)
ARCHIVE := dist/low-rank-attention
# Each core takes one chapter, page or file after another (tests/conftest.py decides what stays together).
PYTEST := -m pytest -n auto --dist loadgroup --no-loadscope-reorder --durations 10
# What `make test FAST=1` leaves out: everything but mathematics, and tests that train networks, start processes or
# compile with PyTorch. A new module is tested without an entry here.
SLOW := book site notebooks explore exercises plotting byhand instruments benchmarks test_package.py test_sphinxext.py \
  kernels.py test_page.py test_make.py test_adoption.py test_autoencoder.py linformer/test_shards.py
MATHEMATICS := $(SLOW:%=--ignore tests/%) $(SLOW:%=--ignore lowrank_tutor/%) -k "not compile"
# PyTorch without the 5 GB that only a GPU needs; `make test-newest TORCH=torch` installs the full one.
TORCH := --index-url https://download.pytorch.org/whl/cpu torch
NEWEST := .venv-newest/bin/python
LOWEST := .venv-lowest/bin/python

# Where Python is told to keep no bytecode, each chapter's kernel would compile all of PyTorch again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: book serve pdf offline plain-sphinx test test-newest test-lowest test-colab colab-image check pins notebooks bench \
  mutants picture clean
.NOTPARALLEL: # one step installs what the next one runs

# Always build all pages: if Sphinx updates an earlier build, the site is not quite the same. The outputs of the cells
# stay, unless the build was interrupted or killed while chapters ran (then the stamp is not empty, see
# _ext/side_by_side.py): half a chapter may be left, so everything goes. Without the trap, the shell takes an interrupt
# for a failure.
book: $(READY)
	@$(ALONE) test ! -s $(UNFINISHED) || rm -rf _build; \
	rm -rf $(SITE) _build/.doctrees _build/jupyter_execute; mkdir -p _build && touch $(UNFINISHED) || exit 1; trap 'exit 130' INT; \
	$(BUILD); status=$$?; test -s $(UNFINISHED) || rm -f $(UNFINISHED); exit $$status
	@printf '%s\n' "The book is ready, $$(du -sm $(SITE) | cut -f1) MB: $$PWD/$(SITE)/index.html"

serve: book
	$(BIN)/python -m http.server 8000 --bind 127.0.0.1 --directory $(SITE)

pdf: $(READY_DEV) book
	@$(ALONE) $(BUILD) --builder custom --custom-builder singlehtml
	$(BIN)/python tools/print_book.py

offline: book
	$(BIN)/python -c 'import shutil; print(shutil.make_archive("$(ARCHIVE)", "zip", "$(SITE)"))'

# The way out of Jupyter Book 1. It writes its settings into conf.py; nothing is pinned.
plain-sphinx: $(READY)
	$(BIN)/jupyter-book config sphinx .
	sed "s/'jupyter_book', //" conf.py > conf.new && mv conf.new conf.py
	"$$PYTHON" -m venv --clear .venv-sphinx
	.venv-sphinx/bin/python -m pip install --quiet $(TORCH)
	.venv-sphinx/bin/python -m pip install --quiet --editable ".[all]" scikit-learn ipykernel fonttools brotli \
	  "sphinx>=9" $$(grep -oE '^(sphinx|myst|pydata)-?[a-z-]+' requirements.txt | grep -vx sphinx)
	PYTHONPATH=_ext .venv-sphinx/bin/python -m sphinx -W -n --keep-going . _build/sphinx

test: $(READY_DEV) $(if $(FAST),,book)
	$(BIN)/python $(PYTEST) $(if $(FAST),$(MATHEMATICS))

test-newest:
	"$$PYTHON" -m venv --clear .venv-newest
	$(NEWEST) -m pip install --quiet $(TORCH)
	$(NEWEST) -m pip install --quiet --editable ".[test]"
	$(NEWEST) $(PYTEST) $(MATHEMATICS)

# Old packages use what newer ones beside them call deprecated: a warning is no error here.
test-lowest:
	"$$PYTHON" -m venv --clear .venv-lowest
	$(LOWEST) -m pip install --quiet uv
	$(LOWEST) -m pip install --quiet $(TORCH)==2.4.0
	$(LOWEST) -m uv pip install --quiet --python $(LOWEST) --resolution lowest-direct --editable ".[test]"
	$(LOWEST) $(PYTEST) $(MATHEMATICS) -W default

# FAST=1 runs a notebook without PyTorch, one with it, and what is no notebook.
test-colab: $(READY_DEV)
	$(BIN)/python $(PYTEST) tests/notebooks -m colab $(if $(FAST),-k "01-rank or 07-linformer or setup or dragging")

# For Colab's own image (see .github/workflows/colab.yml): its Python, its versions, an empty folder.
colab-image:
	python3 -m pip install --quiet --no-deps .
	folder=$$(mktemp -d) && cp book/*.ipynb $$folder && cd $$folder && \
	for notebook in *.ipynb; do echo "$$notebook" && LOWRANK_TUTOR_PAGE=0 jupyter execute "$$notebook" || exit 1; done

# tests/test_make.py compares the commands with those of .pre-commit-config.yaml.
check: $(READY_DEV)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/oxlint --deny-warnings .
	$(BIN)/uv pip install --quiet --dry-run --no-index --no-cache --python .venv --requirement requirements-dev.in --requirement requirements-dev.txt
	$(BIN)/python tools/export_notebooks.py --check

# Existing pins stay, unless ARGS is --upgrade or --upgrade-package NAME. 3.11.2 is the Python of Debian 12.
pins: $(READY_DEV)
	@$(ALONE) $(COMPILE) requirements.in --output-file requirements.txt && \
	$(COMPILE) requirements-dev.in --output-file requirements-dev.txt

notebooks: $(READY_DEV)
	$(BIN)/ruff format .
	$(BIN)/python tools/export_notebooks.py

bench: $(READY_DEV)
	$(BIN)/python -m benchmarks.svd
	$(BIN)/python -m benchmarks.contract
	$(BIN)/python -m benchmarks.linformer --device cpu

picture: $(READY_DEV) book
	$(BIN)/python tools/picture.py

mutants: $(READY_DEV)
	$(BIN)/mutmut run

clean:
	rm -rf .venv* _build dist build mutants *.egg-info

# The environment is made once and updated when its pins change. Without its stamp it is incomplete, and made again.
$(shell test -x $(BIN)/python || rm -f $(READY) $(READY_DEV)) # the Python it was made from is gone

$(READY): requirements.txt pyproject.toml
	@"$$PYTHON" -c "$$ASK" "$$PYTHON"
	@$(ALONE) test -e $@ || "$$PYTHON" -m venv --clear .venv || exit; rm -f $@; \
	$(INSTALL) --requirement requirements.txt && $(INSTALL) --no-deps --no-build-isolation --editable . || { $(NETWORK); }
	@touch $@

$(READY_DEV): requirements-dev.txt $(READY)
	@$(ALONE) rm -f $(READY); $(INSTALL) --requirement requirements-dev.txt || { $(NETWORK); }
	@touch $(READY) $@

# Any Python can run this, however old, and prints nothing but the sentence.
define ASK
import sys
version = "%d.%d" % sys.version_info[:2]
if not (3, 11) <= sys.version_info[:2] <= (3, 14):
    sys.exit("Python 3.11 to 3.14 is needed, and %s is %s: name another one, as in make PYTHON=python3.12 book" % (sys.argv[1], version))
try:
    import ensurepip, venv
except ImportError:
    sys.exit("This Python cannot make an environment: on Debian and Ubuntu, apt install python%s-venv" % version)
endef
export ASK

define LOCK
import fcntl, sys
try:
    fcntl.flock(9, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    sys.exit("Another make is at work in this folder: try again when it has ended.")
endef
export LOCK
