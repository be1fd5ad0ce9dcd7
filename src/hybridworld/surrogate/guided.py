"""`leap` with a guide: a coarse run of the system's own solver is input and base of the prediction.

    answer = I(then) + gate * (z - I(now)) + correction * unit           I: interpolation to the cells of the state

z is the state, `now` its average on the latent grid, `then` what the coarse run makes of it; unit is the root mean square of
then - now, one number per sample. The network gives gate and correction. At first it answers with gate = 1 and correction = 0:
the state and the interpolated change of the coarse run.
"""

import torch
from torch import Tensor, nn

from hybridworld.surrogate.leap import Leap, interpolated

SMALLEST = 1e-2
"""The unit where the coarse run changes nothing."""


class GuidedLeap(nn.Module):
    """A pure function of tensors: the guide itself is run elsewhere."""

    def __init__(
        self, channels: int, boundaries: tuple[str, ...], condition: int, width: int = 96, patch: int = 4
    ) -> None:
        super().__init__()
        self.net = Leap(
            2 * channels, boundaries, condition, width, patch, answers=2 * channels, latent=2 * channels, beside=channels
        )

    @property
    def last(self) -> nn.Module:
        """The layer that gives gate and correction."""
        return self.net.last

    def base(self, coarse: Tensor) -> Tensor:
        """A field on the latent grid, interpolated to the cells of the state."""
        return interpolated(coarse, self.net.patch, self.net.boundaries)

    def forward(self, z: Tensor, now: Tensor, then: Tensor, condition: Tensor) -> Tensor:
        """z (batch, channels, *grid), now and then (batch, channels, *latent grid), condition (batch, size) -> like z."""
        unit = ((then - now).square().flatten(1).mean(dim=1) + SMALLEST**2).sqrt().reshape(-1, *[1] * (z.dim() - 1))
        start, end = self.base(torch.cat([now, then], dim=1)).chunk(2, dim=1)
        detail = z - start
        answer = self.net(
            torch.cat([z, torch.asinh(detail / unit)], dim=1), condition, torch.cat([now, then], dim=1), end
        )
        gate, correction = answer.chunk(2, dim=1)
        return end + (1 + gate) * detail + unit * correction
