"""What is done rarely: ``pipx run nox -s newest``, or another session after ``-s``."""

import os
import re
import shutil
from pathlib import Path

import nox

nox.options.sessions = ["newest"]
# PyTorch without the 5 GB that only a GPU needs; TORCH=torch installs the full one.
TORCH = os.environ.get("TORCH", "--index-url https://download.pytorch.org/whl/cpu torch").split()
TESTS = [
    "pytest",
    "-n",
    "auto",
    "--dist",
    "loadgroup",
    "--no-loadscope-reorder",
    "-m",
    "mathematics and not slow",
]


@nox.session
def newest(session):
    """Test the mathematics with the newest PyTorch and NumPy."""
    session.install(*TORCH)
    session.install("--editable", ".[test]")
    session.run(*TESTS)


@nox.session
def lowest(session):
    """Test the mathematics with the oldest versions that pyproject.toml allows."""
    session.install("uv")
    session.install(*TORCH[:-1], "torch==2.4.0")
    python = Path(session.bin, "python")
    session.run(
        "uv",
        "pip",
        "install",
        "--python",
        python,
        "--resolution",
        "lowest-direct",
        "--editable",
        ".[test]",
    )
    session.run(
        *TESTS, "-W", "default"
    )  # old packages use what newer ones beside them call deprecated


@nox.session(venv_backend="none")
def colab(session):
    """Run the notebooks inside Colab's own image, with its Python and its versions.

    See .github/workflows/colab.yml.
    """
    session.run("python3", "-m", "pip", "install", "--quiet", "--no-deps", ".")
    folder = Path(session.create_tmp())
    for notebook in sorted(Path("book").resolve().glob("*.ipynb")):
        shutil.copy(notebook, folder)
        with session.chdir(folder):
            session.run("jupyter", "execute", notebook.name, env={"LOWRANK_TUTOR_PAGE": "0"})


@nox.session
def sphinx(session):
    """Build the site with the newest Sphinx and without Jupyter Book.

    Jupyter Book writes its settings into conf.py.
    """
    session.run(
        "pipx",
        "run",
        "--spec",
        "jupyter-book<2",
        "jupyter-book",
        "config",
        "sphinx",
        ".",
        external=True,
    )
    conf = Path("conf.py")
    conf.write_text(
        conf.read_text(encoding="utf-8").replace("'jupyter_book', ", ""), encoding="utf-8"
    )
    extensions = re.findall(
        r"^(?:sphinx|myst|pydata)-?[a-z-]+", Path("requirements.txt").read_text(), re.MULTILINE
    )
    session.install(*TORCH)
    session.install("--editable", ".[all]", "scikit-learn", "ipykernel", "fonttools", "brotli")
    session.install("sphinx>=9", *(name for name in extensions if name != "sphinx"))
    build = ["python", "-m", "sphinx", "-W", "-n", "--keep-going", ".", "_build/sphinx"]
    session.run(*build, env={"PYTHONPATH": "site"})
