"""The voice: letters to phones, phones to durations, both to frames. Sound is made of frames by vocoder.py.

Everything works on batches with masks while it learns, and on one text without any when it is exported.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vocoder import BANDS, CEPSTRA

WIDTH, HEADS, REACH = 192, 4, 16
OUTPUTS = CEPSTRA + 2 + BANDS  # cepstrum, pitch, whether voiced, strengths
PLACES = 5  # what a frame knows of its place in its phone


class Convolve(nn.Module):
    """Neighbours first, then every place by itself."""

    def __init__(self, kernel: int, inner: int) -> None:
        super().__init__()
        self.near = nn.Conv1d(WIDTH, WIDTH, kernel, padding=kernel // 2, groups=WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.into = nn.Linear(WIDTH, inner)
        self.out = nn.Linear(inner, WIDTH)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        near = self.near((x if mask is None else x * mask).transpose(1, 2)).transpose(1, 2)
        return x + self.out(F.gelu(self.into(self.norm(near)), approximate="tanh"))


class Attend(nn.Module):
    """Every place looks at every other; how far apart they are counts up to REACH."""

    def __init__(self, inner: int) -> None:
        super().__init__()
        self.norm, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.queries, self.mix = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.distance = nn.Parameter(torch.zeros(2 * REACH + 1, HEADS))
        self.into, self.out = nn.Linear(WIDTH, inner), nn.Linear(inner, WIDTH)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        batch, count, _ = x.shape
        split = self.queries(self.norm(x)).reshape(batch, count, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        at = torch.arange(count, device=x.device)
        apart = (at[None, :] - at[:, None]).clamp(-REACH, REACH) + REACH
        scores = split[0] @ split[1].transpose(2, 3) * (WIDTH // HEADS) ** -0.5
        scores = scores + self.distance[apart].permute(2, 0, 1)
        if mask is not None:
            scores = scores.masked_fill(mask.transpose(1, 2)[:, None] == 0, -1e4)
        seen = (scores.softmax(-1) @ split[2]).transpose(1, 2).reshape(batch, count, WIDTH)
        x = x + self.mix(seen)
        return x + self.out(F.gelu(self.into(self.second(x)), approximate="tanh"))


class Stack(nn.Module):
    def __init__(self, *blocks: nn.Module) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(blocks)
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        for block in self.blocks:
            x = block(x, mask)
        return self.norm(x)


class Network(nn.Module):
    def __init__(self, symbols: int, phones: int, slots: int, voices: int) -> None:
        super().__init__()
        self.slots, self.phones = slots, phones
        self.letter = nn.Embedding(symbols + 1, WIDTH)  # the last one fills up batches
        self.reader = Stack(Convolve(5, 448), Convolve(5, 448), Attend(448), Convolve(5, 448), Attend(448), Attend(448))
        self.slot = nn.Linear(WIDTH, slots * WIDTH)
        self.says = nn.Linear(WIDTH, phones)
        self.phone, self.voice = nn.Embedding(phones, WIDTH), nn.Embedding(voices, WIDTH)
        self.planner = Stack(Convolve(5, 448), Attend(448), Convolve(5, 448), Attend(448))
        self.timer = Stack(Convolve(3, 256))
        self.length = nn.Linear(WIDTH, 1)
        self.place = nn.Linear(PLACES, WIDTH)
        self.speaker = Stack(*(Convolve(9, 384) for _ in range(6)))
        self.frame = nn.Linear(WIDTH, OUTPUTS)
        self.register_buffer("mean", torch.zeros(OUTPUTS))
        self.register_buffer("scale", torch.ones(OUTPUTS))

    def read(self, letters: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """[B, L] to what is thought of every slot [B, L * slots, W] and which phone it may be."""
        x = self.reader(self.letter(letters), mask)
        x = F.gelu(self.slot(x), approximate="tanh").reshape(x.shape[0], -1, WIDTH)
        return x, self.says(x)

    def plan(self, thought: Tensor, phones: Tensor, voice: Tensor, mask: Tensor | None = None):
        """Slots that say something, [B, P], to their meaning and the logarithm of their frames."""
        x = self.planner(thought + self.phone(phones) + self.voice(voice)[:, None], mask)
        return x, self.length(self.timer(x, mask))[..., 0]

    def speak(self, planned: Tensor, places: Tensor, voice: Tensor, mask: Tensor | None = None) -> Tensor:
        """Meanings repeated for every frame, [B, T, W], to normalised frames."""
        return self.frame(self.speaker(planned + self.place(places) + self.voice(voice)[:, None], mask))


def places_of(at: Tensor, length: Tensor) -> Tensor:
    """Frame `at` of a phone of so many."""
    share = (at + 0.5) / length
    return torch.stack([share, (2 * share - 1) ** 2, length.log() / 3, at / 20, (length - at) / 20], -1)
