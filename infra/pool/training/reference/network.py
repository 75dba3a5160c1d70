"""The network: sound to log-mel features, features to scores of letters.

Everything looks at a bounded past and at most to the end of its chunk, so that a live stream can be
computed chunk by chunk with caches and give what the whole utterance would have given.

    samples --(25 ms every 10 ms)--> 80 log-mels --(two strided convolutions)--> 40 ms frames
            --(blocks: attention over chunks, causal convolution, feed-forward)--> tokens
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

RATE, WINDOW, HOP, MELS = 16000, 400, 160, 80
FLOOR = 1e-6  # added before the logarithm: the quietest step of 16-bit sound lies above it

HEAD, SPREAD = 48, 4  # width of an attention head; the feed-forward layer's multiple of the width
CHUNK = 8  # frames of 40 ms: what a stream waits for
LEFT = 64  # frames of the past that attention sees
KERNEL = 15  # frames of the causal convolution


def mel_filters() -> Tensor:
    """[201, 80] triangles, evenly spaced on the mel scale from 20 Hz to 8 kHz."""

    def mel(hertz: float) -> float:
        return 2595 * math.log10(1 + hertz / 700)

    points = torch.linspace(mel(20), mel(RATE / 2), MELS + 2)
    hertz = 700 * (10 ** (points / 2595) - 1)
    bins = torch.linspace(0, RATE / 2, WINDOW // 2 + 1)
    rising = (bins[:, None] - hertz[None, :-2]) / (hertz[1:-1] - hertz[:-2])
    falling = (hertz[None, 2:] - bins[:, None]) / (hertz[2:] - hertz[1:-1])
    return torch.minimum(rising, falling).clamp(min=0)


def windows_of(audio: Tensor) -> Tensor:
    """[B, samples] to [B, steps, WINDOW], a window every HOP; both are whole numbers of 5 ms."""
    piece = HOP // 2
    steps = (audio.shape[1] - WINDOW) // HOP + 1
    pieces = audio[:, : (steps - 1) * HOP + WINDOW].reshape(audio.shape[0], -1, piece)
    return torch.cat([pieces[:, first : first + 2 * steps - 1 : 2] for first in range(WINDOW // piece)], 2)


class Frontend(nn.Module):
    """[B, samples] to [B, steps, 80]; the Fourier transform is a product with a matrix, so any runtime has it. As a
    convolution it would be summed in another order for every length of sound, and a stream would hear other digits."""

    def __init__(self) -> None:
        super().__init__()
        window = torch.hann_window(WINDOW, periodic=False)
        angle = 2 * math.pi / WINDOW * torch.outer(torch.arange(WINDOW // 2 + 1.0), torch.arange(WINDOW * 1.0))
        self.register_buffer("basis", (torch.cat([angle.cos(), -angle.sin()]) * window).T.contiguous())
        self.register_buffer("filters", mel_filters())
        # One fixed mean and scale for every utterance: a stream cannot know its own mean beforehand.
        self.register_buffer("mean", torch.full((MELS,), -6.0))
        self.register_buffer("scale", torch.full((MELS,), 0.25))

    def power(self, audio: Tensor) -> Tensor:
        """[B, steps, WINDOW / 2 + 1]"""
        real, imaginary = (windows_of(audio) @ self.basis).chunk(2, dim=2)
        return real * real + imaginary * imaginary

    def forward(self, audio: Tensor) -> Tensor:
        mels = torch.log(self.power(audio) @ self.filters + FLOOR)
        return (mels - self.mean) * self.scale


class Subsample(nn.Module):
    """Four 10 ms features to one 40 ms frame; frame j hears no feature after 4 j."""

    CHANNELS = 48

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, self.CHANNELS, 3, 2, (0, 1))
        self.second = nn.Conv2d(self.CHANNELS, self.CHANNELS, 3, 2, (0, 1))
        self.project = nn.Linear(self.CHANNELS * MELS // 4, width)

    def join(self, x: Tensor, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """One piece, after the last two columns of the piece before it at both convolutions."""
        x = torch.cat([first, x.unsqueeze(1)], 2)
        y = torch.cat([second, F.silu(self.first(x))], 2)
        z = F.silu(self.second(y)).transpose(1, 2).flatten(2)
        return self.project(z), x[:, :, -2:], y[:, :, -2:]

    def forward(self, features: Tensor) -> Tensor:
        x = F.silu(self.first(F.pad(features.unsqueeze(1), (0, 0, 2, 0))))
        x = F.silu(self.second(F.pad(x, (0, 0, 2, 0))))
        return self.project(x.transpose(1, 2).flatten(2))


def with_past(x: Tensor, batch: int, chunks: int) -> Tensor:
    """[B, T, W] to [B * chunks, LEFT + CHUNK, W]: every chunk after the LEFT frames before it."""
    pieces = F.pad(x, (0, 0, LEFT, 0)).view(batch, chunks + LEFT // CHUNK, CHUNK, x.shape[2])
    shifted = [pieces[:, start : start + chunks] for start in range(LEFT // CHUNK + 1)]
    return torch.cat(shifted, 2).view(batch * chunks, LEFT + CHUNK, x.shape[2])


def by_head(x: Tensor) -> Tensor:
    """[B, T, W] to [B, W / HEAD, T, HEAD]"""
    return x.view(x.shape[0], -1, x.shape[2] // HEAD, HEAD).transpose(1, 2)


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.attend_norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.attend_out = nn.Linear(width, width)
        # One learned score per head for every distance within a chunk and its past.
        self.distance = nn.Parameter(torch.zeros(width // HEAD, LEFT + 2 * CHUNK - 1))
        self.convolve_norm = nn.LayerNorm(width)
        self.gate = nn.Linear(width, 2 * width)
        self.depthwise = nn.Conv1d(width, width, KERNEL, groups=width)
        self.inner_norm = nn.LayerNorm(width)
        self.convolve_out = nn.Linear(width, width)
        self.forward_norm = nn.LayerNorm(width)
        self.widen = nn.Linear(width, SPREAD * width)
        self.narrow = nn.Linear(SPREAD * width, width)
        self.drop = nn.Dropout(0.05)
        query, key = torch.arange(CHUNK)[:, None], torch.arange(LEFT + CHUNK)[None, :]
        self.register_buffer("apart", LEFT + query - key + CHUNK - 1, persistent=False)

    def scores_by_distance(self) -> Tensor:
        return self.distance[:, self.apart]  # [heads, CHUNK, LEFT + CHUNK]

    def attend(self, query: Tensor, key: Tensor, value: Tensor, allowed: Tensor) -> Tensor:
        """query [N, CHUNK, W], key and value [N, LEFT + CHUNK, W], allowed [N, LEFT + CHUNK] as 0 or -1e4."""
        return self.weigh(*(by_head(t) for t in (query, key, value)), allowed)

    def weigh(self, query: Tensor, key: Tensor, value: Tensor, allowed: Tensor) -> Tensor:
        """The same, already by head."""
        scores = query @ key.transpose(2, 3) * (1 / math.sqrt(HEAD))
        scores = scores + self.scores_by_distance() + allowed[:, None, None, :]
        weights = scores.float().softmax(-1).to(value.dtype)
        return self.attend_out((weights @ value).transpose(1, 2).reshape(query.shape[0], CHUNK, self.width))

    def convolve(self, x: Tensor) -> Tensor:
        """x [B, KERNEL - 1 + T, W], already normed and gated, to [B, T, W]."""
        x = self.depthwise(x.transpose(1, 2)).transpose(1, 2)
        return self.convolve_out(F.silu(self.inner_norm(x)))

    def gated(self, x: Tensor) -> Tensor:
        return F.glu(self.gate(self.convolve_norm(x)), -1)

    def feed(self, x: Tensor) -> Tensor:
        return self.narrow(F.silu(self.widen(self.forward_norm(x))))

    def forward(self, x: Tensor, allowed: Tensor) -> Tensor:
        """x [B, T, W] with T a multiple of CHUNK; allowed [B * T / CHUNK, LEFT + CHUNK]."""
        batch, frames, _ = x.shape
        chunks = frames // CHUNK
        query, key, value = self.qkv(self.attend_norm(x)).chunk(3, -1)
        seen = (with_past(t, batch, chunks) for t in (key, value))
        attended = self.attend(query.reshape(batch * chunks, CHUNK, self.width), *seen, allowed)
        x = x + self.drop(attended.reshape(batch, frames, self.width))
        x = x + self.drop(self.convolve(F.pad(self.gated(x), (0, 0, KERNEL - 1, 0))))
        return x + self.drop(self.feed(x))

    def step(self, x: Tensor, keys: Tensor, values: Tensor, gates: Tensor, allowed: Tensor) -> tuple[Tensor, ...]:
        """One chunk after its past: keys and values [B, W / HEAD, LEFT, HEAD], gates [B, KERNEL - 1, W]; returns x
        and what the chunk adds to keys and values, and the new gates."""
        query, key, value = (by_head(t) for t in self.qkv(self.attend_norm(x)).chunk(3, -1))
        x = x + self.weigh(query, torch.cat([keys, key], 2), torch.cat([values, value], 2), allowed)
        gates = torch.cat([gates, self.gated(x)], 1)
        x = x + self.convolve(gates)
        return x + self.feed(x), key, value, gates[:, 1 - KERNEL :]


class Network(nn.Module):
    def __init__(self, tokens: int, width: int, depth: int) -> None:
        super().__init__()
        self.width, self.depth = width, depth
        self.frontend = Frontend()
        self.subsample = Subsample(width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.letters = nn.Linear(width, tokens)

    def forward(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """features [B, T, 80], lengths [B]; returns scores, frames and the scores half-way up (for training)."""
        batch = features.shape[0]
        frames = (lengths + 3) // 4
        x = self.subsample(features)
        count = x.shape[1]
        x = F.pad(x, (0, 0, 0, CHUNK - 1))
        x = x[:, : (count + CHUNK - 1) // CHUNK * CHUNK]
        chunks = x.shape[1] // CHUNK
        starts = torch.arange(chunks, device=x.device)[:, None] * CHUNK
        place = starts + torch.arange(LEFT + CHUNK, device=x.device)[None, :] - LEFT
        allowed = (place >= 0)[None] & (place[None] < frames[:, None, None])
        bias = ((~allowed).to(x.dtype) * -1e4).reshape(batch * chunks, LEFT + CHUNK)
        halfway = x
        for index, block in enumerate(self.blocks):
            x = block(x, bias)
            if index == self.depth // 2:
                halfway = x
        return self.letters(self.norm(x))[:, :count], frames, self.letters(self.norm(halfway))[:, :count]

    def first_caches(self, batch: int) -> list[Tensor]:
        """What a stream starts with, in the order of step's caches."""
        half, depth, heads = Subsample.CHANNELS, self.depth, self.width // HEAD
        return [
            torch.zeros(batch, 1, 2, MELS),
            torch.zeros(batch, half, 2, MELS // 2),
            torch.zeros(batch, depth, heads, LEFT, HEAD),
            torch.zeros(batch, depth, heads, LEFT, HEAD),
            torch.zeros(batch, depth, KERNEL - 1, self.width),
            torch.zeros(batch, 1),
        ]

    def step(self, features: Tensor, frames: Tensor, caches: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        """One chunk: features [B, T, 80] of which frames [B, 1] * 4 are real, T at most 4 CHUNK (the last chunk may be
        shorter, more cannot be added up); returns CHUNK scores and the new caches."""
        first, second, keys, values, gates, seen = caches
        missing = features.new_zeros(features.shape[0], 4 * CHUNK, MELS)[:, features.shape[1] :]
        features = torch.cat([features, missing], 1)
        x, first, second = self.subsample.join(features, first, second)
        place = torch.arange(LEFT + CHUNK, device=x.device)[None, :] - LEFT
        allowed = (place >= -seen) & (place < frames)
        bias = (~allowed).to(x.dtype) * -1e4
        added: list[tuple[Tensor, ...]] = []
        for index, block in enumerate(self.blocks):
            x, *past = block.step(x, keys[:, index], values[:, index], gates[:, index], bias)
            added.append(tuple(past))
        key, value, gates = (torch.stack(pieces, 1) for pieces in zip(*added))
        keys = torch.cat([keys[:, :, :, CHUNK:], key], 3)
        values = torch.cat([values[:, :, :, CHUNK:], value], 3)
        seen = (seen + CHUNK).clamp(max=LEFT)
        return self.letters(self.norm(x)), [first, second, keys, values, gates, seen]
