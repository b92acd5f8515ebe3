"""Other people's tools with the layer, and other people's books with the sliders, as the pages'
tables promise.
"""

import copy
import inspect
import os
import re
import subprocess
import sys
import textwrap
from functools import partial
from pathlib import Path

import nbclient
import nbformat
import numpy as np
import pytest
import torch
import yaml
from attentions import tensors
from chapters import ROOT
from matplotlib.figure import Figure
from torch import nn

from lowrank_tutor import adapters
from lowrank_tutor.kit.sliders import explore
from lowrank_tutor.linformer import LinformerSelfAttention
from lowrank_tutor.svd import relative_error

pytestmark = pytest.mark.repository

SLIDERS = (ROOT / "book" / "use-sliders.md").read_text(encoding="utf-8")
(X,) = tensors((3, 40, 16), dtype=torch.float32)
(WHOLE,) = tensors((3, 64, 16), seed=1, dtype=torch.float32)
# Other people's tools warn of their own future.
others_warn = pytest.mark.filterwarnings("ignore")


def a_layer(bias=True):
    generator = torch.Generator().manual_seed(0)
    layer = LinformerSelfAttention(16, 4, 64, 8, bias=bias, generator=generator)
    with torch.no_grad():
        for name, parameter in layer.named_parameters():
            if name.endswith("bias"):
                parameter.normal_(generator=generator)
    return layer


def with_and_without_gradient(call):
    """The result; both ways give the same."""
    out = call()
    with torch.no_grad():
        np.testing.assert_allclose(call().detach(), out.detach(), rtol=0, atol=1e-6)
    return out.detach()


# the layer


def test_hooks():
    layer, seen = a_layer(), []
    before = layer(X).detach()
    layer.to_k.register_forward_hook(lambda _module, _args, out: seen.append(out.shape))
    layer.to_v.register_forward_hook(lambda _module, _args, out: 2 * out)
    changed = with_and_without_gradient(lambda: layer(X))
    assert seen == [(3, 8, 16)] * 2, "keys are made of k rows"
    assert (changed - before).abs().max() > 0.1


@others_warn
def test_lora_by_peft():
    import peft

    layer = a_layer()
    before = layer(X).detach()
    config = peft.LoraConfig(target_modules=["to_q", "to_k", "to_v"], r=2, init_lora_weights=False)
    adapted = peft.get_peft_model(layer, config).eval()
    out = with_and_without_gradient(lambda: adapted(X))
    assert (out - before).abs().max() > 0.1
    np.testing.assert_allclose(adapted.merge_and_unload()(X).detach(), out, rtol=0, atol=1e-5)


@others_warn
def test_files_of_peft():
    """The lines in help(load_lora) load what peft saved."""
    import peft

    plain = nn.Sequential(nn.Linear(16, 6), nn.Linear(6, 4))
    config = peft.LoraConfig(target_modules=["0", "1"], r=2, lora_alpha=5, init_lora_weights=False)
    theirs = peft.get_peft_model(copy.deepcopy(plain), config).eval()
    names = {name: getattr(adapters, name) for name in ("load_lora", "lora_state")}
    names |= {"saved": peft.get_peft_model_state_dict(theirs)}
    names["model"] = adapters.inject_lora(plain, "*", 2, alpha=5)
    recipe = inspect.cleandoc(adapters.load_lora.__doc__).partition("::")[2]
    exec(textwrap.dedent(recipe), names)
    np.testing.assert_allclose(plain(X).detach(), theirs(X).detach(), rtol=0, atol=1e-6)


@others_warn
def test_quantization():
    layer = a_layer().eval()
    packed = torch.ao.quantization.quantize_dynamic(copy.deepcopy(layer), {nn.Linear})
    out = with_and_without_gradient(lambda: packed(X))
    assert 0 < relative_error(out.flatten(1).numpy(), layer(X).detach().flatten(1).numpy()) < 0.05


class Masked(nn.Module):
    """The layer with its mask by position, as exporters hand things over."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x, real):
        return self.layer(x, token_mask=real)


@others_warn
@pytest.mark.parametrize("masked", [False, True])
def test_export_of_any_length(masked):
    """An export of 40 tokens also holds for a single token and for max_len."""
    layer, lengths = (
        Masked(a_layer()) if masked else a_layer(),
        {1: torch.export.Dim("n", min=1, max=64)},
    )
    given = (X, torch.ones(3, 40, dtype=torch.bool))[: 1 + masked]
    program = torch.export.export(
        layer, given, dynamic_shapes=(lengths, lengths)[: 1 + masked]
    ).module()
    for n in (1, 64):
        tokens = (WHOLE[:, :n], torch.arange(n) < torch.tensor([[64], [30], [1]]))[: 1 + masked]
        np.testing.assert_allclose(
            program(*tokens).detach(), layer(*tokens).detach(), rtol=0, atol=2e-6
        )


PAGE = (ROOT / "book" / "use-linformer.md").read_text(encoding="utf-8")
RECIPE = re.search(r"```python\n([^`]*?\ndef convert\([^`]*)```", PAGE)[1]
SCALING = 0.25  # not what a width of 8 has
TOKENS = torch.randint(0, 50, (2, 24), generator=torch.Generator().manual_seed(0))
REAL = torch.arange(24) < torch.tensor([[24], [15]])
SIZES = {"vocab_size": 50, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 3}
SIZES |= {"num_attention_heads": 2, "pad_token_id": 0, "max_position_embeddings": 32}
BERT, MODERNBERT = re.findall(r"\bconvert\(model, (\[.*?\]), k=\d+\)", PAGE, re.DOTALL)
MODERNBERT = MODERNBERT.replace("whole", re.search(r"^whole = (.*)$", PAGE, re.M)[1])
MODELS = {
    "Bert": (BERT, {"attention_probs_dropout_prob": 0.0}),
    "ModernBert": (MODERNBERT, {
        "local_attention": 6,
        **dict.fromkeys(["eos_token_id", "bos_token_id", "cls_token_id", "sep_token_id"], 1)}),
}  # fmt: skip


def model_and_parts(name, **more):
    import transformers

    torch.manual_seed(0)
    parts, options = MODELS[name]
    config = getattr(transformers, f"{name}Config")(**SIZES | options | more)
    model = getattr(transformers, f"{name}Model")(config).eval()
    if name == "Bert":
        for part in eval(parts, {"model": model}):
            part.scaling = SCALING
    return model, lambda model: eval(parts, {"model": model})


@pytest.fixture(scope="module")
def convert():
    exec(RECIPE, recipe := {})
    return recipe["convert"]


def rotated(x, base):
    """Turn pair i of the vector at position t by t base^(-i/pairs), as complex numbers."""
    pairs = x.shape[3] // 2
    angles = torch.arange(x.shape[2])[:, None] * base ** (
        -torch.arange(pairs, dtype=torch.float64) / pairs
    )
    z = torch.complex(x[..., :pairs], x[..., pairs:]) * torch.polar(torch.ones_like(angles), angles)
    return torch.cat([z.real, z.imag], dim=3)


def dense(part, x, real):
    """Write out the weights (n, k) of averages of 4, with the share of each window that is real, in
    float64.
    """
    linears = [part.Wqkv] if hasattr(part, "Wqkv") else [part.query, part.key, part.value]
    made = torch.cat([copy.deepcopy(linear).double()(x.double()) for linear in linears], dim=2)
    q, k, v = (one.unflatten(2, (2, -1)).transpose(1, 2) for one in made.chunk(3, dim=2))
    if len(linears) == 1:
        q, k = rotated(q, 160_000.0), rotated(k, 160_000.0)
    windows = (
        torch.eye(6, dtype=torch.float64).repeat_interleave(4, dim=1) * real[:, None]
    )  # (batch, 6, n)
    counts = windows.sum(2, keepdim=True)
    means = (windows / counts.clamp(min=1))[:, None]
    logits = q @ (means @ k).transpose(2, 3) * getattr(part, "scaling", q.shape[3] ** -0.5)
    weights = counts[:, None, :, 0][:, :, None] * logits.exp()
    mixed = (weights / weights.sum(3, keepdim=True) @ (means @ v)).transpose(1, 2).flatten(2)
    return copy.deepcopy(part.Wo).double()(mixed) if len(linears) == 1 else mixed


@others_warn
@pytest.mark.parametrize("name", MODELS)
def test_converted_encoder(convert, name):
    exact, parts = model_and_parts(name)
    mask = REAL.long()
    # k = n: nothing changes
    model = copy.deepcopy(exact)
    convert(model, parts(model), k=32)
    expected, out = (one(TOKENS, attention_mask=mask)[0][REAL].detach() for one in (exact, model))
    np.testing.assert_allclose(out, expected, rtol=0, atol=1e-5)
    # averages of 4, on fewer tokens than max_len and with padding: every converted part against the
    # dense formula
    convert(model, parts(model), k=8)
    seen = []
    for part in parts(model):
        part.register_forward_hook(lambda part, x, given,
                                   out: seen.append((part, (*x, *given.values())[0], out[0])),
                                   with_kwargs=True)  # fmt: skip
    out = model(TOKENS, attention_mask=mask, output_attentions=True)
    assert out.attentions == ()
    assert len(seen) == len(parts(model)) == (3 if name == "Bert" else 1)
    for part, x, mixed in seen:
        expected = dense(part, x, REAL)[REAL].detach()
        np.testing.assert_allclose(
            mixed[REAL].detach(), expected, rtol=0, atol=1e-5 * expected.abs().max()
        )
    # padding changes nothing, E learns, and the model comes back from its state
    np.testing.assert_allclose(
        out[0][1, :15].detach(), model(TOKENS[1:, :15])[0][0].detach(), rtol=0, atol=1e-5
    )
    out[0].square().sum().backward()
    assert all(part.e.grad.abs().max() > 0 for part in parts(model))
    again, _ = model_and_parts(name)
    convert(again, parts(again), k=8)
    again.load_state_dict(model.state_dict())
    assert torch.equal(again(TOKENS, attention_mask=mask)[0], out[0])


@others_warn
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("place", [{"dtype": torch.bfloat16}, {"device": "meta"}], ids=str)
def test_converted_place(convert, name, place):
    model, parts = model_and_parts(name)
    convert(model.to(**place), parts(model), k=8)
    assert {(p.dtype, p.device) for p in model.parameters()} == {(model.dtype, model.device)}
    assert model(TOKENS.to(model.device))[0].dtype == model.dtype


PACKED = torch.block_diag(torch.ones(10, 10), torch.ones(14, 14)).bool().expand(2, 1, 24, 24)
REFUSED = {
    "decoder": ({"is_decoder": True}, {}, "parts must be an encoder's, got a decoder's"),
    "packed": ({}, {"attention_mask": PACKED}, "mask must have equal rows"),
    "dropout": ({"attention_probs_dropout_prob": 0.1}, {}, "dropout must be 0, got 0.1"),
    "biases": ({}, {"position_bias": torch.zeros(1, 2, 24, 24)}, "position_bias must be None"),
    "long": (
        {"max_position_embeddings": 16},
        {"position_ids": torch.arange(24)[None] % 16},
        "at most max_len",
    ),
}


@others_warn
@pytest.mark.parametrize("row", REFUSED)
def test_converted_refusals(convert, row):
    options, given, told = REFUSED[row]
    model, parts = model_and_parts("Bert", **options)

    def call():
        convert(model.train(), parts(model), k=8)
        model(TOKENS, **given)

    with pytest.raises(ValueError, match=told):
        call()


BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
PLUG_IN, REPLACE = (
    next(code for code in BLOCKS if name in code) for name in ("def windows(", "def loss(")
)


def a_writer(method="window=64, m=8", name="Llama", **more):
    """A small model that writes, before and after the recipe."""
    import transformers

    names = {}
    exec(PLUG_IN.replace("window=64, m=8", method), names)
    names["windowed"].update(range(2))
    config = getattr(transformers, f"{name}Config")(
        vocab_size=50, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, initializer_range=0.3, pad_token_id=0,
        eos_token_id=None, **more,
    )  # fmt: skip
    torch.manual_seed(0)
    exact = getattr(transformers, f"{name}ForCausalLM")(config).double().eval()
    for layer in exact.model.layers:
        layer.self_attn.scaling = SCALING
    model = copy.deepcopy(exact)
    model.set_attn_implementation("windows")
    return exact, model


@others_warn
@pytest.mark.parametrize("method", ["window=64, m=1", "window=4, m=3"])
def test_attention_plug_in(method):
    """Twenty written tokens are what the whole text gives; groups of one are exact."""
    exact, model = a_writer(method)
    text = torch.randint(1, 50, (2, 9))
    options = {
        "max_new_tokens": 20,
        "do_sample": False,
        "output_logits": True,
        "return_dict_in_generate": True,
    }
    with torch.no_grad():
        written = model.generate(text, **options)
        whole = model(written.sequences).logits
        same = np.allclose(whole[:, :9], exact(text).logits, rtol=0, atol=1e-9)
    assert written.sequences.shape == (2, 29)
    np.testing.assert_allclose(
        torch.stack(written.logits, dim=1), whole[:, 8:-1], rtol=0, atol=1e-5
    )
    assert same == (method == "window=64, m=1")
    model(text, labels=text).loss.backward()
    assert all(part.grad.abs().max() > 0 for part in model.parameters())


@others_warn
def test_layers_replaced_one_by_one(capsys):
    """Nothing replaced is the exact loss, the first is the more harmless layer, and all are windows
    everywhere.
    """
    exact, model = a_writer("window=4, m=3")
    ids = torch.randint(1, 50, (2, 30))
    names = {"torch": torch, "model": model, "ids": ids}
    exec(PLUG_IN.replace("window=64, m=8", "window=4, m=3"), names)
    exec(REPLACE, names)
    loss = names["loss"]
    with torch.no_grad():
        assert loss() == pytest.approx(float(exact(ids, labels=ids).loss), abs=1e-9)
    assert len({loss(), loss(0), loss(1), loss(0, 1)}) == 4
    first = min((0, 1), key=loss)
    losses = [
        f"{loss(*layers):.3f} with windows in {[*layers]}"
        for layers in ((), (first,), (first, 1 - first))
    ]
    assert capsys.readouterr().out.splitlines() == losses


@others_warn
@pytest.mark.parametrize("way", [{"num_beams": 4}, {"prefill_chunk_size": 4}], ids=list)
def test_ways_to_write(way):
    """The cache changes nothing: the same text comes where all is computed again for each token."""
    _, model = a_writer("window=4, m=3")
    alone = {"num_beams": way.get("num_beams", 1), "use_cache": False}
    text = torch.randint(1, 50, (1, 9), generator=torch.Generator().manual_seed(0))
    cached, anew = (
        model.generate(text, max_new_tokens=20, do_sample=False, **given) for given in (way, alone)
    )
    assert torch.equal(cached, anew)


PLAIN, SOFTMAX = "mask must be causal alone", "module must attend by a causal softmax alone"
UNREAD = {  # the model, what else it gets, and the refusal
    "left padding": ({}, {"attention_mask": torch.tensor([[0, 1, 1]])}, PLAIN),
    "a static cache": ({}, {"cache_implementation": "static"}, PLAIN),
    "a window": ({"name": "Mistral", "sliding_window": 64}, {}, SOFTMAX),
    "dropout": ({"attention_dropout": 0.1}, {}, SOFTMAX),
    "both directions": ({}, {"is_causal": False}, SOFTMAX),
    "biases": ({}, {"position_bias": torch.zeros(1, 4, 3, 3)}, SOFTMAX),
}


@others_warn
@pytest.mark.parametrize("row", UNREAD)
def test_plug_in_refusals(row):
    more, given, told = UNREAD[row]
    _, model = a_writer(**more)
    model.train("attention_dropout" in more)
    call = partial(model.generate, max_new_tokens=4) if "cache_implementation" in given else model
    with pytest.raises(ValueError, match=told):
        call(torch.ones(1, 3, dtype=torch.int64), **given)


# other people's books


def spring(k, **_others):
    figure = Figure(figsize=(1, 0.5))
    figure.add_axes((0, 0, 1, 1)).barh(0, k)
    figure.axes[0].set_xlim(0, 10)
    return figure


def springs(**more):
    settings = {"alt": "A spring of strength {k}.", "name": "spring", "k": [1, 2, 3]}
    return explore(spring, **(settings | more))


SAVED = "to wake them, run its cell again"
OWN_PAGE = """---
file_format: mystnb
kernelspec: {name: python3, display_name: Python 3}
---
# Springs

```{code-cell}
:tags: [remove-cell]

from matplotlib.figure import Figure
from lowrank_tutor.byhand import rank_one
from lowrank_tutor.kit.questions import check, register
from lowrank_tutor.kit.sliders import explore

hints = {5: "That is twice the period."}
register("ex-my-spring", "The period", 2.5, otherwise="Divide.", hints=hints)
```

```{code-cell}
draw = lambda k: Figure(figsize=(1, 1))
explore(draw, alt="A spring of strength {k}.", name="spring", k=range(1, 4))
```

```{code-cell}
check("ex-my-spring", ...)
```

```{code-cell}
rank_one([[1, 2], [3, 6]])
```
"""
# One process and one reading of the pages for three builders.
BUILD = """
import sys
from functools import partial
from pathlib import Path
from unittest import mock
from sphinx.application import Sphinx

source = sys.argv[1]
for builder in ("html", "latex", "text"):
    strict = builder == "html"  # a second one warns that all is registered already
    out, doctrees = f"{source}/out/{builder}", f"{source}/out/doctrees"
    app = Sphinx(source, source, out, doctrees, builder, warningiserror=strict)
    app.build()
    assert app.statuscode == 0
"""


def own_folder(folder):
    """None of the machine's settings: a home of its own, and the package of this checkout."""
    home = {
        "HOME": str(folder),
        "JUPYTER_PLATFORM_DIRS": "1",
        "IPYTHONDIR": str(folder),
        "PYTHONPATH": str(ROOT),
    }
    return {k: v for k, v in os.environ.items() if k != "LOWRANK_TUTOR_PAGE"} | home


def run_in(folder, *arguments):
    command = [str(argument) for argument in arguments]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env=own_folder(folder), check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def saved_notebook(monkeypatch):
    """A notebook as JupyterLab saves it when it is told to save the state of widgets, too."""
    monkeypatch.delenv("LOWRANK_TUTOR_PAGE", raising=False)
    bundle = springs()._repr_mimebundle_()
    model = bundle["application/vnd.jupyter.widget-view+json"]["model_id"]
    output = nbformat.v4.new_output("execute_result", bundle, execution_count=1)
    cell = nbformat.v4.new_code_cell("springs", outputs=[output], execution_count=1)
    state = {
        "version_major": 2,
        "version_minor": 0,
        "state": {model: {"model_name": "VBoxModel", "state": {}}},
    }
    metadata = {
        "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
        "widgets": {"application/vnd.jupyter.widget-state+json": state},
    }
    return nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_markdown_cell("# Saved"), cell], metadata=metadata
    )


def test_sphinx_book(tmp_path, monkeypatch):
    """Sliders, a question, worked steps; a notebook saved elsewhere; and the same as LaTeX and as
    text.
    """
    line = re.search(r"^extensions = .*sphinxext.*$", SLIDERS, re.M)[0]
    settings = 'myst_enable_extensions = ["dollarmath"]'
    exclude = 'exclude_patterns = ["out", "jupyter_execute"]'
    # A busy machine may take its time.
    execution = "nb_execution_raise_on_error = True\nnb_execution_timeout = 300"
    (tmp_path / "conf.py").write_text("\n".join([line, exclude, execution, settings]))
    (tmp_path / "index.md").write_text(OWN_PAGE + "\n```{toctree}\nsaved\n```\n")
    nbformat.write(saved_notebook(monkeypatch), tmp_path / "saved.ipynb")
    run_in(tmp_path, sys.executable, "-c", BUILD, tmp_path)

    page = (tmp_path / "out/html/index.html").read_text(encoding="utf-8")
    assert 'data-name="spring" data-frames="3"' in page
    assert '<form class="check" data-name="ex-my-spring"' in page
    assert "That is twice the period." in page
    assert 'class="math notranslate nohighlight"' in page
    assert "$$" not in re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)

    saved = (tmp_path / "out/html/saved.html").read_text(encoding="utf-8")
    assert SAVED in saved
    assert '<img alt="A spring of strength 1."' in saved
    assert "widget-view+json" not in saved, "no slider that is dead"

    latex = "".join(
        path.read_text(encoding="utf-8") for path in (tmp_path / "out/latex").glob("*.tex")
    )
    assert latex.count(r"\noindent\sphinxincludegraphics") == 2, "one picture of each page"
    assert "A spring of strength 1. (k = 1)" in (tmp_path / "out/text/index.txt").read_text(
        encoding="utf-8"
    )


def test_jupyter_book(tmp_path):
    config = yaml.safe_load(re.search(r"```yaml\n(.*?)```", SLIDERS, re.DOTALL)[1])
    (tmp_path / "_config.yml").write_text(yaml.safe_dump(config))
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: index\n")
    (tmp_path / "index.md").write_text(OWN_PAGE)
    run_in(
        tmp_path,
        Path(sys.executable).with_name("jupyter-book"),
        "build",
        tmp_path,
        "-W",
        "-n",
        "--keep-going",
    )
    page = (tmp_path / "_build/html/index.html").read_text(encoding="utf-8")
    assert 'data-name="spring" data-frames="3"' in page
    assert '<form class="check" data-name="ex-my-spring"' in page
    assert 'class="math notranslate nohighlight"' in page
    assert (tmp_path / "_build" / ".lowrank-cache").exists()


def test_nbclient_gets_answer_form(tmp_path, monkeypatch):
    """As `jupyter nbconvert --execute` does it, and every other tool that runs notebooks by
    nbclient.
    """
    for name, value in own_folder(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("LOWRANK_TUTOR_PAGE", raising=False)
    source = OWN_PAGE.split("```{code-cell}")[2].partition("```")[0].strip()
    imports = "from matplotlib.figure import Figure\nfrom lowrank_tutor.kit.sliders import explore"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(f"{imports}\n{source}")])
    nbclient.NotebookClient(notebook, kernel_name="python3", timeout=300).execute()
    (output,) = notebook.cells[0].outputs
    assert set(output.data) == {"text/plain", "text/html", "image/png"}
    assert 'data-frames="3"' in output.data["text/html"]


def test_marimo_frame():
    kind, frame = springs()._mime_()
    assert kind == "text/html"
    assert frame.startswith('<iframe srcdoc="&lt;figure class=&quot;explorer&quot;')


NOTE = """() => {
  const note = document.querySelector(".explorer-asleep");
  return note.checkVisibility() && note.textContent;
}"""


def test_lost_kernel_note(browser):
    """ipywidgets gives every view without a kernel this class, in JupyterLab and in the pages that
    hold its state.
    """
    *_, view = springs().to_widget().children
    with browser.new_page() as page:
        page.set_content(f"<div class='jupyter-widgets'>{view.value}</div>")
        assert page.evaluate(NOTE) is False
        page.set_content(
            f"<div class='jupyter-widgets jupyter-widgets-disconnected'>{view.value}</div>"
        )
        assert SAVED in page.evaluate(NOTE)


def test_words_and_own_formats():
    roman = {1: "I", 2: "II", 3: "III"}
    explorer = springs(
        readout=lambda k: {"motion": "swings" if k < 3 else "creeps", "t": torch.tensor(k)},
        formats={"k": roman.get}, start={"k": 2},
        alt="Strength {k}, or {k:d}: it {motion} for {t}.",
    )  # fmt: skip
    assert explorer.sentence(k=2) == "Strength II, or 2: it swings for 2."
    page = explorer.to_html()
    assert '<data data-name="motion" value="swings">swings</data>' in page
    assert 'checked autocomplete="off"> II</label>' in page


def test_failing_frame_is_named():
    with pytest.raises(ZeroDivisionError) as caught:
        springs(readout=lambda k: {"x": 1 / (k - 2)}).to_html()
    assert caught.value.__notes__ == ["while 'spring' was drawn at {'k': 2}"]
    with pytest.raises(ValueError, match=r"got '<lambda>', which is draw's own: give name=$"):
        explore(lambda k: Figure(), alt="x", k=[1, 2])


AT = """() => ["output", "button"].map((name) => document.querySelector(name).textContent)"""


def test_play_button(browser):
    block = springs(play=True).to_html()
    with browser.new_page() as page:
        page.set_content(block)
        page.get_by_role("button", name="Play").click()
        assert page.evaluate(AT) == ["2", "Pause"]
        page.wait_for_function("document.querySelector('output').textContent === '3'")
        page.get_by_role(
            "button", name="Play"
        ).click()  # it has stopped at the end, and begins again
        assert page.evaluate(AT) == ["1", "Pause"]
        page.get_by_role("slider").press("ArrowRight")  # a hand on the slider stops it
        assert page.evaluate(AT) == ["2", "Play"]
    with browser.new_page(reduced_motion="reduce") as page:
        page.set_content(block)
        page.get_by_role("button", name="Next").click()
        page.wait_for_timeout(800)
        assert page.evaluate(AT) == ["2", "Next"]
    slider_and_player, _view = springs(play="k").to_widget().children
    slider, player = slider_and_player.children
    player.value = 1
    assert slider.value == 2
