"""The speaking voices: which are for training, which are kept for the tests, and how they speak.

espeak-ng and flite are called inside this process through their C libraries; starting a program for
every sentence would cost twenty times the speaking itself.
"""

import ctypes
import math
import random

import numpy as np
from scipy.signal import resample_poly

RATE = 16000

ACCENTS = {
    "en": [
        "en-us",
        "en-us",
        "en",
        "en-gb-scotland",
        "en-gb-x-rp",
        "en-gb-x-gbclan",
        "en-gb-x-gbcwmd",
        "en-029",
        "en-us-nyc",
    ],
    "es": ["es", "es", "es-419"],
    "zh": ["cmn-latn-pinyin"],  # reads pinyin, not characters
    "yue": ["sit/yue-Latn-jyutping"],  # reads jyutping
}
TRAINED = (
    " m1 m2 m3 m4 m5 m6 m8 f1 f2 f3 f4 klatt klatt2 klatt3 klatt5 klatt6 Alex Alicia Andrea Andy Annie "
    "Denis Diogo Gene Henrique Hugo Jacky Lee Marco Mario Michael Mike Storm Tweaky adam anika announcer antonio "
    "belinda benjamin boris caleb croak ed edward fast grandma grandpa gustave iven iven3 john kaukovalta "
    "marcelo max miguel norbert pablo paul pedro rob robert robosoft robosoft3 robosoft5 shelby steph "
    "steph3 travis victor whisper whisperf zac RicishayMax RicishayMax2 RicishayMax3 UniRobot anikaRobot"
).split(" ")
HELD_OUT = (
    "m7 f5 klatt4 Gene2 Nguyen aunty david edward2 iven2 iven4 linda michel quincy sandro steph2 "
    "robosoft2 robosoft6 AnxiousAndy"
).split(" ")
FLITE_TRAINED = ["kal16", "kal", "slt", "awb"]
FLITE_HELD_OUT = ["rms"]

ESPEAK_RATE, ESPEAK_PITCH, ESPEAK_RANGE = 1, 3, 4
SYNCHRONOUS, UTF8 = 2, 1


class Espeak:
    def __init__(self) -> None:
        self.library = ctypes.CDLL("libespeak-ng.so.1")
        self.rate = self.library.espeak_Initialize(SYNCHRONOUS, 0, None, 0)
        self.pieces: list[bytes] = []
        kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)
        self.heard = kind(self._hear)  # kept: the library holds only a bare pointer to it
        self.library.espeak_SetSynthCallback(self.heard)

    def _hear(self, samples, count: int, _events) -> int:
        if count > 0:
            self.pieces.append(ctypes.string_at(samples, count * 2))
        return 0

    def voice(self, name: str, speed: int, pitch: int, spread: int) -> bool:
        found = self.library.espeak_SetVoiceByName(name.encode()) == 0
        for parameter, value in ((ESPEAK_RATE, speed), (ESPEAK_PITCH, pitch), (ESPEAK_RANGE, spread)):
            self.library.espeak_SetParameter(parameter, value, 0)
        return found

    def speak(self, text: str) -> np.ndarray:
        line = text.encode()
        self.pieces.clear()
        self.library.espeak_Synth(line, len(line) + 1, 0, 0, 0, UTF8, None, None)
        return at_16k(np.frombuffer(b"".join(self.pieces), dtype=np.int16), self.rate)


class Wave(ctypes.Structure):
    _fields_ = [
        ("type", ctypes.c_char_p),
        ("rate", ctypes.c_int),
        ("count", ctypes.c_int),
        ("channels", ctypes.c_int),
        ("samples", ctypes.POINTER(ctypes.c_short)),
    ]


class Voice(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("features", ctypes.c_void_p)]


class Flite:
    def __init__(self, names: list[str]) -> None:
        self.library = ctypes.CDLL("libflite.so.1", mode=ctypes.RTLD_GLOBAL)
        self.library.flite_init()
        self.library.flite_text_to_wave.restype = ctypes.POINTER(Wave)
        self.library.flite_text_to_wave.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
        self.library.delete_wave.argtypes = [ctypes.POINTER(Wave)]
        self.library.flite_feat_set_float.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_float]
        self.voices = {}
        for name in names:
            register = getattr(ctypes.CDLL(f"libflite_cmu_us_{name}.so.1"), f"register_cmu_us_{name}")
            register.restype = ctypes.POINTER(Voice)
            register.argtypes = [ctypes.c_char_p]
            self.voices[name] = register(None)

    def speak(self, name: str, text: str, stretch: float, pitch: float) -> np.ndarray:
        voice = self.voices[name]
        self.library.flite_feat_set_float(voice.contents.features, b"duration_stretch", stretch)
        if pitch:
            self.library.flite_feat_set_float(voice.contents.features, b"int_f0_target_mean", pitch)
        wave = self.library.flite_text_to_wave(text.encode(), voice)
        samples = np.ctypeslib.as_array(wave.contents.samples, (wave.contents.count,)).copy()
        rate = wave.contents.rate
        self.library.delete_wave(wave)
        return at_16k(samples, rate)


def at_16k(samples: np.ndarray, rate: int) -> np.ndarray:
    """16 kHz, 16 bits, at nine tenths of full scale."""
    wave = samples.astype(np.float32)
    if rate != RATE:
        common = math.gcd(rate, RATE)
        wave = resample_poly(wave, RATE // common, rate // common).astype(np.float32)
    peak = np.abs(wave).max(initial=1.0)
    return (wave * (29490 / peak)).astype(np.int16)


def espeak_setting(rng: random.Random, variants: list[str], language: str = "en") -> tuple[str, int, int, int]:
    variant = rng.choice(variants)
    name = rng.choice(ACCENTS[language]) + (f"+{variant}" if variant else "")
    return name, rng.randint(115, 195), rng.randint(20, 80), rng.randint(20, 90)


def flite_setting(rng: random.Random, names: list[str]) -> tuple[str, float, float]:
    natural = {"slt": 170, "kal": 105, "kal16": 105, "awb": 125, "rms": 95}
    name = rng.choice(names)
    return name, rng.uniform(0.85, 1.25), natural[name] * rng.uniform(0.8, 1.35)
