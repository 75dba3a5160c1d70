"""Errors on unseen sentences while training: the best token of each frame, no language model."""

import random

import numpy as np
import torch
import torch.nn.functional as F

import voices
from languages import Language


def distance(a: list[str], b: list[str]) -> int:
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return row[-1]


def greedy(scores, frames, tokens: list[str]) -> list[str]:
    best = scores.argmax(-1).tolist()
    texts = []
    for letters, count in zip(best, frames.tolist()):
        kept = [c for i, c in enumerate(letters[:count]) if c and (i == 0 or c != letters[i - 1])]
        texts.append("".join(tokens[c] for c in kept))
    return texts


def test_sets(sentences: list[str], language: Language) -> dict[str, list[tuple[str, np.ndarray]]]:
    rng = random.Random(4)
    espeak, flite = voices.Espeak(), voices.Flite(["slt", "rms"]) if language.name == "en" else None
    names = ["slt", "rms"] if flite else []
    sets: dict[str, list[tuple[str, np.ndarray]]] = {name: [] for name in ["espeak", *names]}
    for text in sentences[:150]:
        espeak.voice(*voices.espeak_setting(rng, voices.HELD_OUT, language.name))
        sets["espeak"].append((text, espeak.speak(language.reading(text))))
        for name in names:
            sets[name].append((text, flite.speak(name, text, 1.0, 0)))
    return sets


@torch.no_grad()
def error_rate(network, examples, language: Language, device) -> float:
    """Wrong words, or characters, per spoken one."""
    wrong = total = 0
    for start in range(0, len(examples), 50):
        part = examples[start : start + 50]
        size = max(len(sound) for _, sound in part)
        sound = torch.stack([F.pad(torch.from_numpy(s).float() / 32768, (0, size - len(s))) for _, s in part])
        counts = torch.tensor([(len(s) - 400) // 160 + 1 for _, s in part], device=device)
        scores, frames, _ = network(network.frontend(sound.to(device)), counts)
        for (text, _), heard in zip(part, greedy(scores, frames, language.tokens)):
            wrong += distance(language.units(heard), language.units(text))
            total += len(language.units(text))
    return wrong / total
