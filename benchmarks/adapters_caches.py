"""Call each package with adapters, latents or states, as its documentation says: one adapter a package.

Peers are imported where they are used: together they take 20 seconds to load and 200 MB of disk, so only this benchmark
needs them (``requirements-peers.txt``).
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from benchmarks.promises import NotOffered, Package
from lowrank_tutor.caches import LoraLinear, latent_cost, latent_from_heads
from lowrank_tutor.states import delta_attention


class CachesPackage(Package):
    """A package that does a part of what chapters 8 and 9 do. An adapter defines some of what ``lacks`` names.

    adapted(linear, r, alpha, kind) : put an update of rank r on a layer: "lora", "rslora", "dora" or "pissa"
    factors(model), merged(model), without(model) : A (r, n) and B (m, r); a plain layer; the layer without the update
    averaged(linear, pairs) : the change of the weight by adapters (B, A) that are combined with equal weights
    per_stored_token() : multiplications that a stored token adds to a new one, with the shapes of DeepSeek-V3
    delta(q, k, v, beta, log_decay) : read a gated delta-rule state, a chunk at a time
    share_sent() : the share of a gradient's numbers that is sent in the first 20 steps
    cut(w, x, k) : w (m, n) cut to rank k, so that the outputs of inputs x (samples, n) change least
    """

    lacks: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("adapted", "factors", "merged", "without"), "no adapters"),
        "averaged": "no way to combine adapters",
        "per_stored_token": "no latent attention",
        "delta": "no delta rule",
        "share_sent": "no compression of gradients",
        "cut": "no cut for given inputs",
    }


class Ours(CachesPackage):
    """The book's own."""

    name, distribution = "lowrank_tutor", "lowrank-tutor"
    layer = "LoraLinear; latent_cost; latent_from_heads; delta_attention"
    ours = True
    may_lack = ("average", "sent")
    KINDS: ClassVar[dict[str, dict[str, Any]]] = {
        "lora": {}, "rslora": {"scaling": "alpha/sqrt(r)"}, "dora": {"magnitude": True}, "pissa": {"init": "principal"},
    }  # fmt: skip

    def adapted(self, linear: nn.Linear, r: int, alpha: float, kind: str) -> Any:
        return LoraLinear(linear, r, alpha=alpha, **self.KINDS[kind])

    def factors(self, model: Any) -> tuple[nn.Parameter, nn.Parameter]:
        return model.a, model.b

    def merged(self, model: Any) -> nn.Module:
        return model.merged()

    def without(self, model: Any) -> nn.Linear:
        return model.reset_base()

    def per_stored_token(self) -> float:
        one, two = (latent_cost(n, 128, 128, 512, 64, absorb=True).multiplications for n in (1, 2))
        return two - one

    def delta(self, q: Tensor, k: Tensor, v: Tensor, beta: Tensor, log_decay: Tensor) -> Tensor:
        return delta_attention(q, k, v, beta, log_decay=log_decay)

    def cut(self, w: Tensor, x: Tensor, k: int) -> Tensor:
        found = latent_from_heads(w.T[None], w.T[None, :, :0], k, moment=x.T @ x / len(x))
        return (found.down @ found.up_k[0]).T


class Peft(CachesPackage):
    """Hugging Face's adapters."""

    name, distribution, layer = "peft", "peft", "get_peft_model with LoraConfig"
    remarks: ClassVar[dict[str, str]] = {
        "average": 'add_weighted_adapter(combination_type="linear") mixes the factors, and cross terms come in; "cat"'
        " gives the average exactly, at twice the rank",
        "base": "PiSSA changes the base weight at the start, and unload() leaves it changed; its documentation converts"
        " the adapter before it is saved",
    }
    KINDS: ClassVar[dict[str, dict[str, Any]]] = {
        "lora": {}, "rslora": {"use_rslora": True}, "dora": {"use_dora": True},
        "pissa": {"init_lora_weights": "pissa"},
    }  # fmt: skip

    def adapted(self, linear: nn.Linear, r: int, alpha: float, kind: str) -> Any:
        from peft import LoraConfig, get_peft_model

        config = LoraConfig(r=r, lora_alpha=alpha, target_modules=["0"], **self.KINDS[kind])
        return get_peft_model(nn.Sequential(linear), config)

    def factors(self, model: Any) -> tuple[nn.Parameter, nn.Parameter]:
        inner = model.base_model.model[0]
        return inner.lora_A["default"].weight, inner.lora_B["default"].weight

    def merged(self, model: Any) -> nn.Module:
        return model.merge_and_unload()

    def without(self, model: Any) -> nn.Linear:
        return model.unload()[0]

    def averaged(self, linear: nn.Linear, pairs: list[tuple[Tensor, Tensor]]) -> Tensor:
        from peft import LoraConfig, get_peft_model

        before = linear.weight.detach().clone()
        r = pairs[0][1].shape[0]
        names = [f"task{i}" for i in range(len(pairs))]
        config = LoraConfig(r=r, lora_alpha=r, target_modules=["0"])
        model = get_peft_model(nn.Sequential(linear), config, adapter_name=names[0])
        for name in names[1:]:
            model.add_adapter(name, config)
        inner = model.base_model.model[0]
        with torch.no_grad():
            for name, (b, a) in zip(names, pairs, strict=True):
                inner.lora_A[name].weight.copy_(a)
                inner.lora_B[name].weight.copy_(b)
        model.add_weighted_adapter(names, [1 / len(names)] * len(names), "mean", combination_type="linear")
        model.set_adapter("mean")
        return model.merge_and_unload()[0].weight.detach() - before


class Lycoris(CachesPackage):
    """LyCORIS, adapters for image models and others."""

    name, distribution, layer = "lycoris", "lycoris-lora", "LoConModule"
    KINDS: ClassVar[dict[str, dict[str, Any]]] = {
        "lora": {}, "rslora": {"rs_lora": True}, "dora": {"weight_decompose": True},
    }  # fmt: skip

    def adapted(self, linear: nn.Linear, r: int, alpha: float, kind: str) -> Any:
        from lycoris import LoConModule

        if kind not in self.KINDS:
            raise NotOffered("no start from singular vectors")
        model = LoConModule("layer", linear, lora_dim=r, alpha=alpha, **self.KINDS[kind])
        model.apply_to()
        return model

    def factors(self, model: Any) -> tuple[nn.Parameter, nn.Parameter]:
        return model.lora_down.weight, model.lora_up.weight

    def merged(self, model: Any) -> nn.Module:
        model.restore()
        model.merge_to()
        return model.org_module[0]


class Transformers(CachesPackage):
    """Hugging Face's models."""

    name, distribution, layer = "transformers", "transformers", "DeepseekV3Attention; torch_chunk_gated_delta_rule"
    remarks: ClassVar[dict[str, str]] = {
        "work": "stores latents, and makes the keys and values of all of them anew for each new token"
    }

    def per_stored_token(self) -> float:
        from torch.utils.flop_counter import FlopCounterMode
        from transformers import DeepseekV3Config, DynamicCache
        from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3Attention

        config = DeepseekV3Config(attn_implementation="eager")
        config._attn_implementation = "eager"
        with torch.device("meta"):
            layer = DeepseekV3Attention(config, layer_idx=0)
            found = []
            for n in (8, 9):
                cache = DynamicCache()
                for tokens in (n, 1):
                    x, angle = torch.zeros(1, tokens, config.hidden_size), torch.zeros(1, tokens, 64)
                    with FlopCounterMode(display=False) as counter:
                        layer(x, (angle, angle), None, past_key_values=cache)
                found.append(counter.get_total_flops() / 2)
        return found[1] - found[0]

    def delta(self, q: Tensor, k: Tensor, v: Tensor, beta: Tensor, log_decay: Tensor) -> Tensor:
        from transformers.models.qwen3_next.modeling_qwen3_next import torch_chunk_gated_delta_rule

        parts = [part.transpose(1, 2) for part in (q * q.shape[3] ** 0.5, k, v, log_decay, beta)]
        return torch_chunk_gated_delta_rule(*parts)[0].transpose(1, 2)


class Whitening(CachesPackage):
    """SVD-LLM's published steps, written out here: its repository is no package to install."""

    name, distribution, layer = "SVD-LLM's steps", "torch", "Cholesky factors of the inputs' moment, shifted if need be"
    remarks: ClassVar[dict[str, str]] = {
        "samples": "the moment has no Cholesky factors then; the steps add its least eigenvalue to the diagonal and try"
        " again"
    }

    def cut(self, w: Tensor, x: Tensor, k: int) -> Tensor:
        moment = x.double().T @ x.double()
        try:
            root = torch.linalg.cholesky(moment)
        except torch.linalg.LinAlgError:
            shift = 1e-6 - torch.linalg.eigvalsh(moment)[0]
            root = torch.linalg.cholesky(moment + shift * torch.eye(len(moment)))
        inverse = torch.linalg.inv(root).float()
        u, sigma, vt = torch.linalg.svd(w @ root.float(), full_matrices=False)
        return (u[:, :k] * sigma[:k]) @ (vt[:k] @ inverse)


class Torch(CachesPackage):
    """PyTorch's own hook for gradients."""

    name, distribution, layer = "torch", "torch", "PowerSGDState(None), powerSGD_hook"
    remarks: ClassVar[dict[str, str]] = {
        "sent": "start_powerSGD_iter is 1,000 by default: until then gradients are sent whole"
    }

    def share_sent(self) -> float:
        import tempfile

        from torch import distributed
        from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as power

        with tempfile.TemporaryDirectory() as folder:
            meeting = f"file://{folder}/meet"
            distributed.init_process_group("gloo", init_method=meeting, rank=0, world_size=1)
            try:
                layer = nn.Linear(64, 64, bias=False)
                model = nn.parallel.DistributedDataParallel(layer)
                state = power.PowerSGDState(None)
                model.register_comm_hook(state, power.powerSGD_hook)
                for _ in range(20):
                    model(torch.ones(2, 64)).sum().backward()
                _, before, after = state.compression_stats()
            finally:
                distributed.destroy_process_group()
        full = 20 * 64 * 64
        return (full - before + after) / full


ADAPTERS = (Ours(), Peft(), Lycoris(), Transformers(), Whitening(), Torch())
