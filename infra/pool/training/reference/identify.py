"""The language identifier: its network, and its training on speech that is spoken while it trains.

    python3 identify.py --text work/text --repository ../../models/repository --out work --minutes 15
    python3 identify.py --repository ../../models/repository --export work/language-id.pt
    python3 identify.py --text work/text --measure /usr/share/asterisk/sounds

The last form prints the shares that the shipped model gets right, of synthetic speech and of the prompts of Debian's
asterisk-core-sounds-en-wav and -es-wav.

All languages come from the same voices of espeak-ng at the same speeds and pitches, lest the synthesiser give the
language away. An utterance is cut to 1 to 4 s, so that the first seconds of a request suffice.
"""

import argparse
import copy
import glob
import math
import os
import random
import time
import wave

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import augment
import export
import shrink
import voices
from languages import ALL, language
from network import HOP, MELS, RATE, WINDOW, Frontend
from speakers import Speakers
from train import read_text, save, shipped_features

WIDTH = 128
DILATIONS = (1, 2, 4, 1, 2, 4)


class Layer(nn.Module):
    """Depthwise convolution over time and a feed-forward layer, both residual."""

    def __init__(self, dilation: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.depthwise = nn.Conv1d(WIDTH, WIDTH, 7, padding=3 * dilation, dilation=dilation, groups=WIDTH)
        self.widen = nn.Linear(WIDTH, 2 * WIDTH)
        self.narrow = nn.Linear(2 * WIDTH, WIDTH)
        self.drop = nn.Dropout(0.1)

    def forward(self, x: Tensor, real: Tensor) -> Tensor:
        mixed = self.depthwise((self.norm(x) * real).transpose(1, 2)).transpose(1, 2)
        return x + self.drop(self.narrow(F.silu(self.widen(mixed))))


class Identifier(nn.Module):
    """features [B, T, 80] and their counts [B] to scores [B, languages]; padding changes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.frontend = Frontend()
        self.first = nn.Linear(4 * MELS, WIDTH)  # four features of 10 ms make a frame
        self.layers = nn.ModuleList(Layer(dilation) for dilation in DILATIONS)
        self.norm = nn.LayerNorm(WIDTH)
        self.attend = nn.Linear(WIDTH, 1)
        self.scores = nn.Linear(2 * WIDTH, len(ALL))

    def forward(self, features: Tensor, counts: Tensor) -> Tensor:
        batch = features.shape[0]
        features = F.pad(features, (0, 0, 0, 4))  # so that a sound shorter than a frame has one
        frames = torch.div(features.shape[1], 4, rounding_mode="floor")
        x = features[:, : frames * 4].reshape(batch, -1, 4 * MELS)
        number = torch.div(counts, 4, rounding_mode="floor").clamp(min=1)
        real = (torch.arange(x.shape[1], device=x.device)[None, :] < number[:, None]).to(x.dtype)[:, :, None]
        size = number[:, None, None].to(x.dtype)
        x = x - (x * real).sum(1, keepdim=True) / size  # the microphone and the line are no language
        x = self.first(x)
        for layer in self.layers:
            x = layer(x, real)
        x = self.norm(x)
        weight = (self.attend(x) + (real - 1) * 1e4).softmax(1)
        mean = (x * weight).sum(1)
        spread = ((x * x * weight).sum(1) - mean * mean).clamp(min=1e-5).sqrt()
        return self.scores(torch.cat([mean, spread], 1))


def cut(features: Tensor, counts: Tensor, steps: int) -> tuple[Tensor, Tensor]:
    """`steps` features of each utterance from a random place; counts [B] on the CPU."""
    spare = (counts - steps).clamp(min=0)
    begin = (torch.rand(len(counts)) * (spare + 1)).long().to(features.device)
    place = begin[:, None] + torch.arange(steps, device=features.device)[None, :]
    place = place.clamp(max=features.shape[1] - 1)
    return features.gather(1, place[:, :, None].expand(-1, -1, MELS)), counts.clamp(max=steps)


def batch_of(pools: list[augment.Pool], frontend: Frontend, size: int, rng: random.Random):
    """As many utterances of every language, spoiled together and cut alike."""
    found = []
    for pool in pools:
        places = [rng.randrange(pool.oldest, len(pool.spans)) for _ in range(size)]
        tempo = torch.empty(size, 1).uniform_(0.9, 1.12)
        found.append(pool.draw(places, tempo, torch.randint(0, RATE // 4, (size, 1)), 0))
    longest = max(sound.shape[1] for sound, _ in found)
    sound = torch.cat([F.pad(sound, (0, longest - sound.shape[1])) for sound, _ in found])
    lengths = torch.cat([lengths for _, lengths in found])
    with torch.no_grad():
        features = augment.hide(frontend(augment.spoil(sound)))
    counts = (lengths - WINDOW) // HOP + 1
    features, counts = cut(features, counts, rng.randrange(100, 400))
    return features, counts, torch.arange(len(pools)).repeat_interleave(size)


def test_set(text: str, seconds: float, size: int = 100) -> list[tuple[int, Tensor]]:
    """The first seconds of `size` unseen sentences of every language by unseen voices."""
    rng, espeak, found = random.Random(4), voices.Espeak(), []
    for number, name in enumerate(ALL):
        _, unseen, _ = read_text(f"{text}/{name}")
        while sum(label == number for label, _ in found) < size:
            espeak.voice(*voices.espeak_setting(rng, voices.HELD_OUT, name))
            sound = espeak.speak(language(name).reading(rng.choice(unseen)))
            if len(sound) >= seconds * RATE:
                found.append((number, torch.from_numpy(sound[: int(seconds * RATE)]).float() / 32768))
    return found


@torch.no_grad()
def accuracy(network: Identifier, examples: list[tuple[int, Tensor]], device) -> dict[str, float]:
    sound = torch.stack([sound for _, sound in examples]).to(device)
    features = network.frontend(sound)
    counts = torch.full((len(examples),), features.shape[1], device=device)
    best = network(features, counts).argmax(1).tolist()
    right = {name: [best[i] == n for i, (n, _) in enumerate(examples) if n == m] for m, name in enumerate(ALL)}
    return {name: round(sum(hits) / len(hits), 3) for name, hits in right.items()}


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--text", default="work/text")
    options.add_argument("--repository", default="../../models/repository")
    options.add_argument("--out", default="work")
    options.add_argument("--minutes", type=float, default=15)
    options.add_argument("--rate", type=float, default=2e-3)
    options.add_argument("--batch", type=int, default=48, help="utterances of each language")
    options.add_argument("--hours", type=float, default=20, help="sound of each language that is kept")
    options.add_argument("--export", help="a checkpoint to write into the repository")
    options.add_argument("--measure", help="a folder of prompts in en_* and es_*")
    chosen = options.parse_args()
    if chosen.export:
        write(chosen.export, f"{chosen.repository}/language_scores/1/model.onnx")
    elif chosen.measure:
        measure(chosen)
    else:
        train(chosen)


def prompts(folder: str, name: str, seconds: float) -> list[Tensor]:
    """The first seconds of human prompts."""
    found = []
    for path in sorted(glob.glob(f"{folder}/{name}_*/**/*.wav", recursive=True)):
        with wave.open(path) as file:
            rate, sound = file.getframerate(), np.frombuffer(file.readframes(file.getnframes()), np.int16)
        if len(sound) >= seconds * rate:
            heard = voices.resample_poly(sound[: int(seconds * rate)].astype(np.float32) / 32768, RATE // rate, 1)
            found.append(torch.from_numpy(heard.astype(np.float32)))
    return found


def measure(chosen: argparse.Namespace) -> None:
    features, scores = (f"{chosen.repository}/{name}/1/model.onnx" for name in ("vad_preprocess", "language_scores"))
    for seconds in (1, 2, 4):
        examples = test_set(chosen.text, seconds, 150)
        sets = {f"{name} synthetic": [s for n, s in examples if ALL[n] == name] for name in ALL}
        sets |= {f"{name} people": prompts(chosen.measure, name, seconds) for name in ("en", "es")}
        for title, sounds in sets.items():
            found = []
            for sound in sounds:
                heard, count = export.preprocess(features, [sound])
                found.append(ALL[int(export.run(scores, FEATURES=heard, FEATURE_LENGTH=count)[0].argmax())])
            share = found.count(title.split()[0]) / len(found)
            print(f"{seconds} s, {title}: {share:.3f} of {len(found)}", flush=True)


class Scores(nn.Module):
    def __init__(self, network: Identifier) -> None:
        super().__init__()
        self.network = network

    def forward(self, features: Tensor, length: Tensor) -> Tensor:
        return self.network(features, length.reshape(-1).long()).log_softmax(-1)


@torch.no_grad()
def write(checkpoint: str, path: str) -> None:
    """Writes the model of the features, with weights in 16 bits, and proves that padding changes nothing."""
    network = Identifier().eval()
    network.load_state_dict(torch.load(checkpoint, map_location="cpu", weights_only=True))
    features, length = torch.randn(2, 203, MELS), torch.tensor([[203], [150]], dtype=torch.int32)
    axes = {"FEATURES": {0: "batch", 1: "steps"}, "FEATURE_LENGTH": {0: "batch"}, "LOG_PROBS": {0: "batch"}}
    export.export(Scores(network), (features, length), path, ["FEATURES", "FEATURE_LENGTH"], ["LOG_PROBS"], axes)
    shrink.to_fp16(path, path)
    (together,) = export.run(path, FEATURES=features, FEATURE_LENGTH=length)
    (alone,) = export.run(path, FEATURES=features[1:, :150], FEATURE_LENGTH=length[1:])
    apart = (together[1] - alone[0]).abs().max().item()
    assert apart < 1e-4, f"{path}: padding changes {apart}"
    print(f"{path}: {os.path.getsize(path):,} bytes, a padded item differs by {apart:.2g}")


def train(chosen: argparse.Namespace) -> None:
    began = time.time()
    seed = int(began) % 10_000_000 + 50_000
    speakers = []
    for number, name in enumerate(ALL):
        sentences, _, words = read_text(f"{chosen.text}/{name}")
        speakers.append(Speakers(1, seed + 100 * number, name, sentences, words, flite=False))
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(17)
    network = Identifier().to(device)
    network.load_state_dict(shipped_features(chosen.repository), strict=False)
    average = copy.deepcopy(network).eval()
    pools = [augment.Pool(chosen.hours, device) for _ in ALL]
    tests = test_set(chosen.text, 2)
    optimiser = torch.optim.AdamW(network.parameters(), lr=chosen.rate, betas=(0.9, 0.98), weight_decay=0.02)
    while min(len(pool.spans) for pool in pools) < 8 * chosen.batch:
        for number, (speaker, pool) in enumerate(zip(speakers, pools)):
            speaker.collect(pool, 5, number)
        time.sleep(0.2)
    rng = random.Random(50)
    training, step, shown = time.time(), 0, time.time()
    while (progress := (time.time() - training) / (chosen.minutes * 60)) < 1:
        for number, (speaker, pool) in enumerate(zip(speakers, pools)):
            speaker.collect(pool, 1, number)
        for group in optimiser.param_groups:
            group["lr"] = chosen.rate * min(1, (step + 1) / 300) * (0.5 + 0.5 * math.cos(math.pi * progress)) + 1e-6
        features, counts, labels = batch_of(pools, network.frontend, chosen.batch, rng)
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            scores = network(features, counts.to(device))
        loss = F.cross_entropy(scores.float(), labels.to(device), label_smoothing=0.05)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 3.0)
        optimiser.step()
        optimiser.zero_grad()
        step += 1
        with torch.no_grad():
            keep = min(0.999, step / (step + 20))
            torch._foreach_lerp_(list(average.parameters()), list(network.parameters()), 1 - keep)
        if time.time() - shown > 30:
            shown = time.time()
            heard = ", ".join(f"{pool.hours():.1f}" for pool in pools)
            right = accuracy(average, tests, device)
            print(f"{shown - began:.0f} s step {step} loss {loss.item():.3f} hours {heard} {right}", flush=True)
            save(average, f"{chosen.out}/language-id.pt")
    print(f"end: step {step} {accuracy(average, tests, device)}", flush=True)
    save(average, f"{chosen.out}/language-id.pt")
    for speaker in speakers:
        for process in speaker.all:
            process.kill()
    os._exit(0)


if __name__ == "__main__":
    main()
