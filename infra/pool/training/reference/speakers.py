"""Processes that speak sentences for as long as the training runs."""

import multiprocessing
import os
import pickle
import random
import tempfile
import time

import numpy as np
import torch

import augment
import voices
from languages import Language, language
from network import RATE

LONGEST = 15 * RATE
PACK = 40  # utterances handed over at once
MOST = 200  # packs that wait
PART = ".part"


def text_for(rng: random.Random, sentences: list[str], words: list[str], gap: str) -> str:
    draw = rng.random()
    if draw < 0.15:  # words out of context: the letters must come from the sound
        return gap.join(rng.choice(words) for _ in range(rng.randint(1, 8)))
    if draw < 0.25:
        return rng.choice(sentences) + gap + rng.choice(sentences)
    return rng.choice(sentences)


class Speaker:
    """One process's voices of a language; flite has English ones."""

    def __init__(self, spoken: Language, seed: int, flite: bool) -> None:
        self.language = spoken
        self.rng = random.Random(seed)
        self.espeak = voices.Espeak()
        self.flite = voices.Flite(voices.FLITE_TRAINED) if flite else None

    def speak(self, texts: list[str]) -> list[np.ndarray]:
        """The texts by one voice, drawn at random."""
        # flite's statistical voices, slt and awb, take ten times as long as all others: they are most of the work.
        drawn = self.rng.random() if self.flite else 0
        if drawn < 0.6:
            self.espeak.voice(*voices.espeak_setting(self.rng, voices.TRAINED, self.language.name))
            return [self.espeak.speak(self.language.reading(text)) for text in texts]
        names = ["kal16", "kal"] if drawn < 0.72 else ["slt", "awb"]
        name, stretch, pitch = voices.flite_setting(self.rng, names)
        return [self.flite.speak(name, text, stretch, pitch) for text in texts]


def speak_forever(
    folder: str, name: str, sentences: list[str], words: list[str], seed: int, flite: bool
) -> None:
    """Writes packs as files, renamed when complete: a voice library that crashes leaves no half pack."""
    os.nice(5)
    number = 0
    speaker = Speaker(language(name), seed, flite)
    while True:
        sounds, texts = [], []
        while len(sounds) < PACK:
            drawn = [text_for(speaker.rng, sentences, words, speaker.language.gap) for _ in range(2)]
            for text, sound in zip(drawn, speaker.speak(drawn)):
                if RATE // 4 < len(sound) < LONGEST:
                    sounds.append(sound)
                    texts.append(text)
        while len(os.listdir(folder)) > MOST:
            time.sleep(0.5)
        number += 1
        path = f"{folder}/{os.getpid()}-{number}"
        with open(path + PART, "wb") as file:
            pickle.dump((np.concatenate(sounds), [len(s) for s in sounds], texts), file)
        os.rename(path + PART, path)


class Speakers:
    def __init__(
        self, count: int, seed: int, name: str, sentences: list[str], words: list[str], flite: bool
    ) -> None:
        self.folder = tempfile.mkdtemp(dir="/dev/shm")
        self.index = {token: number for number, token in enumerate(language(name).tokens)}
        self.begin = lambda number: multiprocessing.Process(
            target=speak_forever, args=(self.folder, name, sentences, words, number, flite), daemon=True
        )
        self.seed = seed
        self.all = [self.begin(seed + number) for number in range(count)]
        for process in self.all:
            process.start()

    def collect(self, pool: augment.Pool, most: int, label: int | None = None) -> None:
        """Moves spoken packs into the pool, each utterance labelled with its tokens, or with `label` alone."""
        complete = [name for name in os.listdir(self.folder) if not name.endswith(PART)]
        for name in complete[:most]:
            with open(f"{self.folder}/{name}", "rb") as file:
                sound, lengths, texts = pickle.load(file)
            os.remove(f"{self.folder}/{name}")
            labels = [[self.index[c] for c in text] if label is None else [label] for text in texts]
            pool.add(torch.from_numpy(sound), lengths, labels)
        for number, process in enumerate(self.all):
            if not process.is_alive():  # a voice library crashed; another speaker takes the place
                self.seed += 1000
                self.all[number] = self.begin(self.seed + number)
                self.all[number].start()
