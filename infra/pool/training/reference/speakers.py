"""Processes that speak sentences for as long as the training runs."""

import multiprocessing
import os
import queue
import random

import numpy as np
import torch

import augment
import voices
from network import RATE, TOKENS

INDEX = {token: number for number, token in enumerate(TOKENS)}
LONGEST = 15 * RATE
PACK = 40  # utterances handed over at once


def text_for(rng: random.Random, sentences: list[str], words: list[str]) -> str:
    draw = rng.random()
    if draw < 0.15:  # words out of context: the letters must come from the sound
        return " ".join(rng.choice(words) for _ in range(rng.randint(1, 8)))
    if draw < 0.25:
        return rng.choice(sentences) + " " + rng.choice(sentences)
    return rng.choice(sentences)


def speak_forever(out: multiprocessing.Queue, sentences: list[str], words: list[str], seed: int) -> None:
    os.nice(5)
    rng = random.Random(seed)
    espeak, flite = voices.Espeak(), voices.Flite(voices.FLITE_TRAINED)
    while True:
        sounds, texts = [], []
        while len(sounds) < PACK:
            # flite's statistical voices, slt and awb, take ten times as long as all others: they are most of the work.
            drawn = rng.random()
            if drawn < 0.6:
                espeak.voice(*voices.espeak_setting(rng, voices.TRAINED))
            else:
                name, stretch, pitch = voices.flite_setting(rng, ["kal16", "kal"] if drawn < 0.72 else ["slt", "awb"])
            for _ in range(2):
                text = text_for(rng, sentences, words)
                sound = espeak.speak(text) if drawn < 0.6 else flite.speak(name, text, stretch, pitch)
                if RATE // 4 < len(sound) < LONGEST:
                    sounds.append(sound)
                    texts.append(text)
        out.put((np.concatenate(sounds), [len(s) for s in sounds], texts))


class Speakers:
    def __init__(self, count: int, seed: int, sentences: list[str], words: list[str]) -> None:
        self.out = multiprocessing.Queue(400)
        self.begin = lambda number: multiprocessing.Process(
            target=speak_forever, args=(self.out, sentences, words, number), daemon=True
        )
        self.seed = seed
        self.all = [self.begin(seed + number) for number in range(count)]
        for process in self.all:
            process.start()

    def collect(self, pool: augment.Pool, most: int) -> None:
        for _ in range(most):
            try:
                sound, lengths, texts = self.out.get_nowait()
            except queue.Empty:
                break
            pool.add(torch.from_numpy(sound), lengths, [[INDEX[c] for c in text] for text in texts])
        for number, process in enumerate(self.all):
            if not process.is_alive():  # a voice library crashed; another speaker takes the place
                self.seed += 1000
                self.all[number] = self.begin(self.seed + number)
                self.all[number].start()
