"""Word errors on unseen sentences while training: the best letter of each frame, no language model."""

import random

import numpy as np
import torch
import torch.nn.functional as F

import voices
from network import TOKENS


def distance(a: list[str], b: list[str]) -> int:
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return row[-1]


def greedy(scores, frames) -> list[str]:
    best = scores.argmax(-1).tolist()
    texts = []
    for letters, count in zip(best, frames.tolist()):
        kept = [c for i, c in enumerate(letters[:count]) if c and (i == 0 or c != letters[i - 1])]
        texts.append("".join(TOKENS[c] for c in kept))
    return texts


def test_sets(sentences: list[str]) -> dict[str, list[tuple[str, np.ndarray]]]:
    rng = random.Random(4)
    espeak, flite = voices.Espeak(), voices.Flite(["slt", "rms"])
    sets: dict[str, list[tuple[str, np.ndarray]]] = {"espeak": [], "slt": [], "rms": []}
    for text in sentences[:150]:
        espeak.voice(*voices.espeak_setting(rng, voices.HELD_OUT))
        sets["espeak"].append((text, espeak.speak(text)))
        for name in ("slt", "rms"):
            sets[name].append((text, flite.speak(name, text, 1.0, 0)))
    return sets


@torch.no_grad()
def word_errors(network, frontend, examples, device) -> float:
    wrong = total = 0
    for start in range(0, len(examples), 50):
        part = examples[start : start + 50]
        size = max(len(sound) for _, sound in part)
        sound = torch.stack([F.pad(torch.from_numpy(s).float() / 32768, (0, size - len(s))) for _, s in part])
        counts = torch.tensor([(len(s) - 400) // 160 + 1 for _, s in part], device=device)
        scores, frames, _ = network(frontend(sound.to(device)), counts)
        for (text, _), heard in zip(part, greedy(scores, frames)):
            wrong += distance(heard.split(), text.split())
            total += len(text.split())
    return wrong / total
