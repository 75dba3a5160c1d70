"""What happens to clean speech on its way to a microphone, for a whole batch at once on the GPU.

Speed and pitch, room, loudspeaker and microphone colour, telephone band, background, level, clipping.
Every utterance draws its own; a share of each batch stays as it was spoken.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

RATE = 16000


def chance(batch: int, share: float, like: Tensor) -> Tensor:
    return (torch.rand(batch, 1, device=like.device) < share).float()


def between(batch: int, low: float, high: float, like: Tensor) -> Tensor:
    return torch.rand(batch, 1, device=like.device) * (high - low) + low


class Pool:
    """Spoken sentences on the GPU, 16 bits a sample, in one ring: new ones replace the oldest."""

    def __init__(self, hours: float, device: torch.device) -> None:
        self.sound = torch.zeros(int(hours * 3600 * RATE), dtype=torch.int16, device=device)
        self.spans: list[tuple[int, int, list[int]]] = []
        self.end = 0
        self.oldest = 0
        self.added = 0

    def add(self, sound: Tensor, lengths: list[int], labels: list[list[int]]) -> None:
        total = sound.shape[0]
        if self.end + total > self.sound.shape[0]:
            while self.oldest < len(self.spans) and self.spans[self.oldest][0] >= self.end:
                self.oldest += 1  # what is left of the round before
            self.end = 0
        limit = self.end + total
        while self.oldest < len(self.spans):
            start, length, _ = self.spans[self.oldest]
            if start >= limit or start + length <= self.end:
                break
            self.oldest += 1
        self.sound[self.end : limit].copy_(sound, non_blocking=True)
        for length, label in zip(lengths, labels):
            self.spans.append((self.end, length, label))
            self.end += length
        self.added += total

    def hours(self) -> float:
        return self.added / RATE / 3600

    def draw(self, places: list[int], tempo: Tensor, before: Tensor, after: int) -> tuple[Tensor, Tensor]:
        """Utterances at their own tempo (and so pitch), with silence around; returns sound and lengths.

        tempo and before are [B, 1] on the CPU, and so are the lengths: nothing here waits for the GPU.
        """
        device = self.sound.device
        lengths = torch.tensor([self.spans[i][1] for i in places])[:, None]
        spoken = (lengths / tempo).long() - 2
        total = spoken + before + after
        size = -(-int(total.max()) // 8000) * 8000  # a length that Fourier transforms like
        starts = torch.tensor([self.spans[i][0] for i in places])[:, None]
        starts, spoken, before, tempo = (t.to(device, non_blocking=True) for t in (starts, spoken, before, tempo))
        at = torch.arange(size, device=device)[None, :] - before
        inside = (at >= 0) & (at < spoken)
        where = at.clamp(min=0) * tempo
        whole = where.floor()
        part = where - whole
        index = (starts + whole.long()).clamp(max=self.sound.shape[0] - 2)
        left, right = self.sound[index].float(), self.sound[index + 1].float()
        return (left + (right - left) * part) * inside / 32768, total[:, 0]


def colour(sound: Tensor) -> Tensor:
    """Room, equaliser and band limits: three multiplications of the spectrum."""
    batch, count = sound.shape
    size = count + 8000
    spectrum = torch.fft.rfft(sound, size)
    bins = torch.linspace(0, RATE / 2, spectrum.shape[1], device=sound.device)[None, :]

    time = torch.arange(8000, device=sound.device)[None, :] / RATE
    decay = between(batch, 0.01, 0.1, sound)
    room = torch.randn(batch, 8000, device=sound.device) * torch.exp(-time / decay) * (time > 0.002)
    room = room / room.norm(dim=1, keepdim=True) * between(batch, 0.1, 0.7, sound) * chance(batch, 0.3, sound)
    room[:, 0] = 1
    spectrum = spectrum * torch.fft.rfft(room, size)

    points = torch.randn(batch, 1, 10, device=sound.device) * between(batch, 0, 5, sound)[:, None]
    gains = F.interpolate(points, spectrum.shape[1], mode="linear", align_corners=True)[:, 0]
    spectrum = spectrum * 10 ** (gains / 20)

    telephone = chance(batch, 0.25, sound)
    low = telephone * between(batch, 100, 350, sound)
    high = torch.where(telephone > 0, between(batch, 3200, 3950, sound), between(batch, 5000, 14000, sound))
    spectrum = spectrum * torch.sigmoid((bins - low) / 20) * torch.sigmoid((high - bins) / 40)
    return torch.fft.irfft(spectrum, size)[:, :count]


def background(sound: Tensor) -> Tensor:
    """Coloured noise for most, other speakers for some."""
    batch, count = sound.shape
    power = (sound.pow(2).sum(1, keepdim=True) / (sound != 0).sum(1, keepdim=True).clamp(min=1)).sqrt()
    noise = torch.fft.rfft(torch.randn_like(sound))
    bins = torch.arange(1, noise.shape[1] + 1, device=sound.device)[None, :]
    noise = torch.fft.irfft(noise * (bins / 100).clamp(min=1) ** -between(batch, 0, 1.2, sound), count)
    noise = noise / noise.pow(2).mean(1, keepdim=True).sqrt()
    sound_level = 10 ** (-between(batch, 7, 45, sound) / 20) * chance(batch, 0.6, sound)
    others = (sound.roll(1, 0) + sound.roll(2, 0) + sound.roll(3, 0)) / (3 * power.roll(2, 0) + 1e-6)
    others_level = 10 ** (-between(batch, 12, 35, sound) / 20) * chance(batch, 0.1, sound)
    return sound + power * (noise * sound_level + others * others_level)


def spoil(sound: Tensor) -> Tensor:
    batch = sound.shape[0]
    clean = chance(batch, 0.25, sound)
    heard = background(colour(sound))
    heard = heard * clean.logical_not() + sound * clean
    heard = heard / heard.abs().amax(1, keepdim=True).clamp(min=1e-4)
    level = 10 ** (-between(batch, 0, 30, sound) / 20)
    heard = (heard * (1 + 0.5 * chance(batch, 0.1, sound))).clamp(-1, 1) * level
    return (heard * 32767).round() / 32768


def hide(features: Tensor) -> Tensor:
    """SpecAugment: two bands and three moments of each utterance are hidden."""
    batch, count, mels = features.shape
    device = features.device
    for size, length, times, limit in ((mels, mels, 2, 14), (count, count, 3, 12)):
        place = torch.arange(size, device=device)[None, :]
        for _ in range(times):
            start = torch.rand(batch, 1, device=device) * length
            hidden = (place >= start) & (place < start + torch.rand(batch, 1, device=device) * limit)
            features = features.masked_fill(
                hidden[:, None, :] if size == mels and limit == 14 else hidden[:, :, None], 0
            )
    return features
