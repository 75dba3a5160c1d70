"""Frames to sound, without anything learned: pulses and noise, filtered by what the mel-cepstrum says.

What flite's own filter (MLSA) does sample by sample is done here in pieces of 10 ms, with matrices, so that it fits
into the graph of the network. The same frames give the same sound always: the noise is a table.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

RATE, HOP = 16000, 80  # 5 ms
FFT, BINS = 512, 257
PIECE = 2 * HOP
CEPSTRA, BANDS = 25, 5
ALPHA, BETA, GAIN = 0.42, 0.4, 1.5  # what flite's voices slt and awb are made for
FULL = 32768.0
NOISE = 32768  # samples until the noise repeats itself: two seconds
LAYERS = 7  # a filtered piece reaches over so many hops


def warped(bins: int = BINS) -> Tensor:
    """Frequencies 0 to pi as the mel-cepstrum bends them."""
    omega = torch.linspace(0, math.pi, bins, dtype=torch.float64)
    return omega + 2 * torch.atan2(ALPHA * omega.sin(), 1 - ALPHA * omega.cos())


def sharpened(cepstra: Tensor) -> Tensor:
    """The post-filter of flite's vocoder: formants get more pronounced, the energy stays."""
    last = cepstra.shape[1]
    given = F.pad(cepstra.double(), (0, 1))
    turn = torch.eye(last + 1, dtype=torch.float64, device=cepstra.device)
    turn = turn + torch.diag(torch.full((last,), ALPHA, dtype=torch.float64, device=cepstra.device), 1)
    b = torch.linalg.solve(turn, given.T).T
    b[:, 1] -= BETA * ALPHA * given[:, 2]
    b[:, 2:] *= 1 + BETA
    after = (turn @ b.T).T
    shape = torch.cos(torch.arange(last + 1, dtype=torch.float64)[:, None] * warped()).to(cepstra.device)
    weights = torch.full((BINS,), 2.0, dtype=torch.float64, device=cepstra.device)
    weights[0] = weights[-1] = 1
    before, now = (((2 * (c @ shape)).exp() * weights).sum(1) for c in (given, after))
    after[:, 0] += (before / now).log() / 2
    return after[:, :last].float()


class Vocoder(nn.Module):
    def __init__(self, filters: Tensor) -> None:
        """`filters`: how loud each band of excitation is at each of BINS frequencies."""
        super().__init__()
        angle = 2 * math.pi * torch.arange(FFT, dtype=torch.float64)[:, None] * torch.arange(BINS) / FFT
        window = torch.hann_window(PIECE, dtype=torch.float64)[:, None]
        scale = torch.full((BINS, 1), 2 / FFT, dtype=torch.float64)
        scale[0] = scale[-1] = 1 / FFT
        order = torch.arange(CEPSTRA)[:, None] * warped()
        keep = self.register_buffer
        keep("into", torch.cat([angle.cos()[:PIECE] * window, -angle.sin()[:PIECE] * window], 1).float())
        keep("out", torch.cat([angle.cos().T * scale, -angle.sin().T * scale]).float())
        keep("shape", torch.cat([order.cos(), -order.sin()], 1).float())
        keep("filters", filters.float())
        keep("noise", (torch.rand(NOISE, generator=torch.Generator().manual_seed(1)) < 0.5).float() * 2 - 1)

    def excite(self, pitch: Tensor, voiced: Tensor) -> tuple[Tensor, Tensor]:
        """Pulses and noise for T + 1 hops: band-limited pulses where it is voiced."""
        steps = torch.arange(1, HOP + 1, device=pitch.device) / HOP
        later = torch.cat([pitch[1:], pitch[-1:]])
        slope = (later - pitch)[:, None]
        cycles = (pitch[:, None] * steps + slope * steps * steps / 2) * (HOP / RATE)
        base = cycles[:, -1].cumsum(0) - cycles[:, -1]
        base = base - base.floor()
        phase = cycles + base[:, None]
        phase = phase - phase.floor()
        now = pitch[:, None] + slope * steps
        many = 2 * torch.floor(RATE / 2 / now) + 1
        below = torch.sin(math.pi * phase)
        near = below.abs() < 1e-4
        ratio = torch.sin(math.pi * many * phase) / torch.where(near, torch.ones_like(below), below)
        pulses = torch.where(near, many, ratio) * (now / RATE).sqrt() * voiced[:, None]
        at = torch.arange(pitch.shape[0] * HOP, device=pitch.device)
        return pulses.reshape(-1), self.noise[at - torch.div(at, NOISE, rounding_mode="floor") * NOISE]

    def forward(self, pitch: Tensor, voiced: Tensor, cepstra: Tensor, strengths: Tensor) -> Tensor:
        """[T] in Hz, [T] 0 or 1, [T, 25] sharpened, [T, 5] to T * HOP samples, 1 is full scale."""
        count = pitch.shape[0]
        pulses, noise = self.excite(pitch, voiced)

        def spectrum(sound: Tensor) -> tuple[Tensor, Tensor]:
            hops = F.pad(sound, (HOP, 0)).reshape(count + 1, HOP)  # a piece reaches one hop around its frame
            both = torch.cat([hops[:-1], hops[1:]], 1) @ self.into
            return both[:, :BINS], both[:, BINS:]

        strong = strengths * voiced[:, None]
        pulsed, noisy = strong @ self.filters, (1 - strong) @ self.filters
        (pulse_re, pulse_im), (noise_re, noise_im) = spectrum(pulses), spectrum(noise)
        re, im = pulse_re * pulsed + noise_re * noisy, pulse_im * pulsed + noise_im * noisy
        curve = cepstra @ self.shape
        loud = curve[:, :BINS].clamp(max=12).exp() * (GAIN / FULL)
        cos, sin = curve[:, BINS:].cos(), curve[:, BINS:].sin()
        turned = torch.cat([(re * cos - im * sin) * loud, (re * sin + im * cos) * loud], 1)
        layers = F.pad(turned @ self.out, (0, LAYERS * HOP - FFT)).reshape(count, LAYERS, HOP)
        sound = sum(F.pad(layers[:, k], (0, 0, k, LAYERS - 1 - k)) for k in range(LAYERS))
        return sound[1 : count + 1].reshape(-1)
