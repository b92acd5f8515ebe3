"""Squeeze points through a few numbers with a network that learns to rebuild them.

Chapter ``book/03-family.md``. Letters: ``x`` (n, d) holds one point per row, and ``z`` (n, k) the
numbers kept of each.
"""

import itertools
import math
from collections.abc import Callable

from lowrank_tutor._on_demand import needed

with needed(__name__):
    import torch
    from torch import Tensor, nn

from lowrank_tutor._checks import check_integer
from lowrank_tutor._tensors import check_device, check_dtype, check_generator, check_like

__all__ = ["Autoencoder"]


class Autoencoder(nn.Module):
    r"""Squeeze each point through k numbers, and learn to rebuild it from them.

    Without a hidden layer both sides are linear, $z = W_E (x - \bar x)$ and $\hat x = \bar x + W_D
    z$. Training finds the plane of PCA, but not the principal axes in it (Baldi and Hornik, 1989,
    doi:10.1016/0893-6080(89)90014-2). Along a direction in which the points do not spread at all,
    $W_E$ stays as it started. With a hidden layer (Kramer, 1991, doi:10.1002/aic.690370209) each
    side is linear, tanh, linear, with biases, and the plane becomes a surface that may bend.

    Parameters
    ----------
    d, k : int
        Width of a point, at least 1, and the number of numbers kept of it, between 1 and ``d``.
    hidden : int, optional
        Width of the hidden layer on each side, at least ``k``. Without it both sides are linear.
    generator : torch.Generator, optional
        Draws the encoder's weights, by default torch's global one: normal, with the variance 1 /
        the width of its input. The decoder starts as the encoder's mirror image, each matrix
        transposed: from two unrelated starts, the linear one needs many times as many steps. Biases
        start at zero.

    Attributes
    ----------
    mean : Tensor, shape (d,)
        Subtracted by the encoder and added by the decoder, as in PCA: zero until `fit` takes the
        mean of the points.
    encoder, decoder : Module
        Each an ``nn.Linear``, or an ``nn.Sequential`` of linear, tanh, linear. In the linear case
        the columns of ``decoder.weight`` span the plane.

    Examples
    --------
    >>> import torch
    >>> x = torch.tensor([[-2.0, 2.0], [4.0, 2.0], [1.0, 3.0], [1.0, 1.0]])  # widest along y = 2
    >>> model = Autoencoder(d=2, k=1, generator=torch.Generator().manual_seed(0))
    >>> round(model.fit(x)[-1].item(), 3)  # the variance along the other axis
    0.5
    """

    mean: Tensor

    def __init__(
        self,
        d: int,
        k: int,
        hidden: int | None = None,
        *,
        generator: torch.Generator | None = None,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        self.d = check_integer(d, "d")
        self.k = check_integer(k, "k", 1, self.d, "d")
        self.hidden = None if hidden is None else check_integer(hidden, "hidden", self.k)
        dtype = check_dtype(dtype)
        device = check_device(device)
        check_generator(generator)
        widths = [self.d, self.k] if self.hidden is None else [self.d, self.hidden, self.k]
        starts = []  # the first weights of the encoder's layers, (width out, width in)
        for width, out in itertools.pairwise(widths):
            start = torch.empty((out, width), dtype=dtype, device=device)
            starts.append(start.normal_(std=1 / math.sqrt(width), generator=generator))
        self.register_buffer("mean", torch.zeros(self.d, dtype=dtype, device=device))
        self.encoder = _layers(starts)
        self.decoder = _layers([start.T for start in reversed(starts)])

    def encode(self, x: Tensor) -> Tensor:
        """Keep k numbers of each point: (n, d) to (n, k)."""
        check_like("x", x, ("n", self.d), "the autoencoder", self.mean)
        codes: Tensor = self.encoder(x - self.mean)
        return codes

    def decode(self, z: Tensor) -> Tensor:
        """Rebuild points from what was kept: (n, k) to (n, d)."""
        check_like("z", z, ("n", self.k), "the autoencoder", self.mean)
        points: Tensor = self.mean + self.decoder(z)
        return points

    def forward(self, x: Tensor) -> Tensor:
        """Squeeze points (n, d) through k numbers and rebuild them, ``decode(encode(x))``."""
        return self.decode(self.encode(x))

    def fit(self, x: Tensor, *, steps: int = 200) -> Tensor:
        r"""Learn from all points: lower $\frac1n \sum_i \|x_i - \hat x_i\|^2$ by L-BFGS.

        Each step searches along a line. The descent (Liu and Nocedal, 1989, doi:10.1007/BF01589116)
        starts from the current parameters, so that a second call with the same points continues it.
        A linear autoencoder finds the same map in every unit. With a hidden layer the unit matters:
        tanh bends between -3 and 3 and is flat beyond.

        Returns the loss before the first step and after each step, (steps + 1,), which never rises.
        A linear autoencoder can reach PCA's loss and no less: the sum of the variances left out,
        with divisor n. For a dozen coordinates the default steps come within a ten-thousandth of
        the total variance of it. So they may miss a direction whose standard deviation is below a
        hundredth of the largest. If the coordinates have such different units, divide each by its
        standard deviation first.
        """
        check_like("x", x, ("n", self.d), "the autoencoder", self.mean)
        steps = check_integer(steps, "steps", 0)
        x = x.detach()
        center = x.mean(dim=0)
        spread = (x - center).square().sum(dim=1).mean().item()  # NaN where there is no point
        if not math.isfinite(spread):
            raise ValueError(f"x must be points with a finite spread, got {spread}")
        self.mean.copy_(center)
        unit = spread or 1.0  # dividing the loss by the spread makes the first step fit any unit
        # One step per call; max_eval leaves room for its line search, which the default of one
        # evaluation would not. The default tolerances would stop it while directions of little
        # spread are still to be found.
        optimizer = torch.optim.LBFGS(
            self.parameters(), max_iter=1, max_eval=20, tolerance_grad=0, tolerance_change=0,
            line_search_fn="strong_wolfe",
        )  # fmt: skip

        def share() -> Tensor:
            optimizer.zero_grad()
            loss: Tensor = (self(x) - x).square().sum(dim=1).mean() / unit
            loss.backward()  # type: ignore[no-untyped-call]
            return loss.detach()

        optimize: Callable[[Callable[[], Tensor]], Tensor] = optimizer.step
        losses: list[Tensor] = []
        ended = False
        while not ended:
            step = len(losses)
            # Once a step gains nothing, only rounding is left. optimizer.step returns the loss
            # before the step.
            ended = step == steps or (step > 1 and bool(losses[-1] == losses[-2]))
            loss = torch.enable_grad()(share)() if ended else optimize(share)
            if not loss.isfinite():
                raise ValueError(f"parameters must give a finite loss, got {loss.item()}")
            losses.append(unit * loss)
        optimizer.zero_grad()
        return torch.stack(losses + losses[-1:] * (steps + 1 - len(losses)))


def _layers(starts: list[Tensor]) -> nn.Module:
    """Make linear layers from weights (width out, width in).

    One layer has no bias; several have tanh in between.
    """
    layers: list[nn.Module] = []
    for start in starts:
        out, width = start.shape
        # On the meta device, so that nn.Linear draws nothing from the global generator.
        linear = nn.Linear(width, out, device="meta")
        linear.weight = nn.Parameter(start.clone(memory_format=torch.contiguous_format))
        linear.register_parameter(
            "bias", nn.Parameter(start.new_zeros(out)) if len(starts) > 1 else None
        )
        layers += [nn.Tanh(), linear] if layers else [linear]
    return nn.Sequential(*layers) if len(layers) > 1 else layers[0]
