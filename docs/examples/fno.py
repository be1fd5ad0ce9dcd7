"""A Fourier neural operator of the `neuraloperator` package, trained on our data, under our error map.

pip install neuraloperator
hybridworld generate fno.py:Oregonator32 --count train=160,val=100,test=100,ood-far=100 --out data/oregonator32
python fno.py data/oregonator32                               # three minutes on one core; writes fno.pt beside this file
hybridworld calibrate --model fno.py:load --system fno.py:Oregonator32 --horizons 1-16
hybridworld predict fno.safetensors --backbone fno.py:load --system fno.py:Oregonator32 --horizon 16 --check
"""

import sys
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from neuralop.models import FNO
from torch import Tensor, nn

from hybridworld.data.dataset import Dataset
from hybridworld.data.pairs import Pairs
from hybridworld.physics.oregonator import Oregonator
from hybridworld.surrogate.horizons import drawn_horizons
from hybridworld.surrogate.validation import to_tensors

WEIGHTS = Path(__file__).with_name("fno.pt")
LONGEST = 16


@dataclass(frozen=True)
class Oregonator32(Oregonator):
    """The reaction-diffusion system on 32 x 32 cells."""

    grid: tuple[int, ...] = (32, 32)

    @property
    def spec(self):
        return replace(super().spec, frames=65, horizons=(1, 2, 4, 8, LONGEST))


class Operator(nn.Module):
    """states (batch, 2, 32, 32), horizon in frames, params (batch, 2) -> states: a change, by one pass of the operator."""

    def __init__(self) -> None:
        super().__init__()
        self.fno = FNO(n_modes=(12, 12), in_channels=5, out_channels=2, hidden_channels=24, positional_embedding=None)
        for name, size in (("mean", 2), ("std", 2), ("param_mean", 2), ("param_std", 2)):
            self.register_buffer(name, torch.ones(size))

    def forward(self, states: Tensor, horizon: float | Tensor, params: Tensor) -> Tensor:
        """The horizon may be one number, or in training one per state."""
        z = (states - self.mean[:, None, None]) / self.std[:, None, None]
        share = torch.as_tensor(horizon, dtype=z.dtype).expand(len(z)) / LONGEST
        known = torch.cat([share.log2()[:, None], (params - self.param_mean) / self.param_std], dim=1)
        inputs = torch.cat([z, known[:, :, None, None].expand(-1, -1, *z.shape[2:])], dim=1)
        change = self.fno(inputs) * share.sqrt()[:, None, None, None]
        return states + change * self.std[:, None, None]


def load() -> Operator:
    """What `--model fno.py:load` and `--backbone fno.py:load` name."""
    model = Operator()
    model.load_state_dict(torch.load(WEIGHTS, weights_only=True))
    return model.eval()


def train(data: Path, steps: int = 2_500, seed: int = 0) -> Operator:
    """Mean square error of pairs (state, horizon, params, future), every whole horizon drawn log-uniformly."""
    torch.manual_seed(seed)
    horizons, probabilities = drawn_horizons((1, LONGEST), "range")
    source = Dataset(data).source("train")
    pairs = Pairs(source, 8, seed, horizons, Oregonator32().symmetries, shifts=True, probabilities=probabilities)
    model, first = Operator(), [to_tensors(pairs.batch(number), torch.device("cpu")) for number in range(20)]
    states, params = (torch.cat([batch[part] for batch in first]) for part in (0, 2))
    model.mean, model.std = states.mean(dim=(0, 2, 3)), states.std(dim=(0, 2, 3))
    model.param_mean, model.param_std = params.mean(dim=0), params.std(dim=0)
    optimiser = torch.optim.AdamW(model.parameters(), 3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 3e-3, total_steps=steps)
    for step, batch in zip(range(steps), pairs.batches(), strict=False):
        now, spans, given, future = to_tensors(batch, torch.device("cpu"))
        loss = ((model(now, spans, given) - future) / model.std[:, None, None]).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
        if step % 250 == 0:
            print(f"step {step}: loss {loss:.3g}", flush=True)
    state = model.state_dict().items()  # FNO adds its options to it, which are no tensors
    torch.save({name: values for name, values in state if isinstance(values, Tensor)}, WEIGHTS)
    return model.eval()


if __name__ == "__main__":
    train(Path(sys.argv[1]))
