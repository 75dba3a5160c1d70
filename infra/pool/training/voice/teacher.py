"""The teacher: a statistical voice of flite, asked for what it is about to say instead of for its sound.

flite's clustergen voices predict, every 5 ms, the pitch, 25 mel-cepstral coefficients and five strengths of voicing, and
make sound of them with a fixed filter. `Teacher.say` gives these numbers, with the phones and how long each of them is.
"""

import ctypes
from ctypes import POINTER, c_char_p, c_double, c_float, c_int, c_ushort, c_void_p
from dataclasses import dataclass

import numpy as np

CEPSTRA, BANDS = 25, 5
PAUSE = "pau"
BINS = 257


class Track(ctypes.Structure):
    _fields_ = [
        ("type", c_char_p),
        ("frames", c_int),
        ("channels", c_int),
        ("times", POINTER(c_float)),
        ("rows", POINTER(POINTER(c_float))),
    ]

    def array(self) -> np.ndarray:
        return np.stack([np.ctypeslib.as_array(self.rows[i], (self.channels,)) for i in range(self.frames)]).copy()


class Database(ctypes.Structure):
    """cst_cg_db of flite 2.2, as far as its last field that is read here."""

    _fields_ = [
        ("name", c_char_p), ("types", c_void_p), ("num_types", c_int), ("sample_rate", c_int),
        ("f0_mean", c_float), ("f0_stddev", c_float), ("num_f0_models", c_int), ("f0_trees", c_void_p),
        ("num_param_models", c_int), ("param_trees", c_void_p), ("accent_tree", c_void_p), ("phrase_tree", c_void_p),
        ("num_channels", c_void_p), ("num_frames", c_void_p), ("model_vectors", c_void_p),
        ("num_channels_accent", c_int), ("num_frames_accent", c_int), ("accent_vectors", c_void_p),
        ("model_min", c_void_p), ("model_range", c_void_p), ("qtable", c_void_p), ("model_shape", c_int),
        ("frame_advance", c_float), ("num_dur_models", c_int), ("dur_stats", c_void_p), ("dur_cart", c_void_p),
        ("phone_states", c_void_p), ("do_mlpg", c_int), ("dynwin", c_void_p), ("dynwinsize", c_int),
        ("alpha", c_float), ("beta", c_float), ("multimodel", c_int), ("mixed", c_int),
        ("bands", c_int), ("order", c_int), ("filters", POINTER(POINTER(c_double))),
        ("spamf0", c_int), ("gain", c_float),
    ]  # fmt: skip


@dataclass
class Phone:
    name: str  # vowels end in 0 or 1, their stress
    word: int  # number of the word in the utterance, -1 between words
    frames: int


@dataclass
class Said:
    words: list[str]
    phones: list[Phone]
    frames: np.ndarray  # pitch in Hz (0: unvoiced), mel-cepstrum (before the post-filter), strengths of voicing


SIGNATURES = {
    "flite_synth_text": (c_void_p, [c_char_p, c_void_p]),
    "delete_utterance": (None, [c_void_p]),
    "utt_relation": (c_void_p, [c_void_p, c_char_p]),
    "relation_head": (c_void_p, [c_void_p]),
    "item_next": (c_void_p, [c_void_p]),
    "item_feat_string": (c_char_p, [c_void_p, c_char_p]),
    "item_feat_float": (c_float, [c_void_p, c_char_p]),
    "ffeature_string": (c_char_p, [c_void_p, c_char_p]),
    "path_to_item": (c_void_p, [c_void_p, c_char_p]),
    "feat_val": (c_void_p, [c_void_p, c_char_p]),
    "val_track": (POINTER(Track), [c_void_p]),
    "val_cg_db": (POINTER(Database), [c_void_p]),
    "mlpg": (POINTER(Track), [POINTER(Track), POINTER(Database)]),
    "delete_track": (None, [POINTER(Track)]),
    "flite_feat_set_int": (None, [c_void_p, c_char_p, c_int]),
}


class Voice(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("features", c_void_p)]


class Utterance(ctypes.Structure):
    _fields_ = [("features", c_void_p)]


class Teacher:
    def __init__(self, name: str) -> None:
        self.library = ctypes.CDLL("libflite.so.1", mode=ctypes.RTLD_GLOBAL)
        self.library.flite_init()
        for function, (result, arguments) in SIGNATURES.items():
            entry = getattr(self.library, function)
            entry.restype, entry.argtypes = result, arguments
        register = getattr(ctypes.CDLL(f"libflite_cmu_us_{name}.so.1"), f"register_cmu_us_{name}")
        register.restype, register.argtypes = POINTER(Voice), [c_char_p]
        self.voice = register(None)
        # Its sound is not wanted: the fewest coefficients make it fastest.
        self.library.flite_feat_set_int(self.voice.contents.features, b"mlsa_speed_param", 20)
        self.database: Database | None = None

    def phones_of(self, utterance: int) -> tuple[list[str], list[Phone]]:
        library, words, phones, last, before = self.library, [], [], None, 0
        item = library.relation_head(library.utt_relation(utterance, b"Segment"))
        while item:
            name = library.item_feat_string(item, b"name").decode()
            word = library.path_to_item(item, b"R:SylStructure.parent.parent.R:Word")
            if name != PAUSE and word and word != last:
                last = word
                words.append(library.item_feat_string(word, b"name").decode())
            if library.ffeature_string(item, b"ph_vc") == b"+":
                name += library.ffeature_string(item, b"R:SylStructure.parent.stress").decode()
            end = round(library.item_feat_float(item, b"end"), 4)
            until = int(end / 0.005 + 1e-3) + 1  # flite's own rule: frames that begin by then
            phones.append(Phone(name, -1 if name == PAUSE else len(words) - 1, until - before))
            before = until
            item = library.item_next(item)
        return words, phones

    def pronounce(self, text: str) -> tuple[list[str], list[Phone]]:
        """Words and phones only."""
        utterance = self.library.flite_synth_text(text.encode(), self.voice)
        found = self.phones_of(utterance)
        self.library.delete_utterance(utterance)
        return found

    def say(self, text: str) -> Said:
        library = self.library
        utterance = library.flite_synth_text(text.encode(), self.voice)
        features = ctypes.cast(utterance, POINTER(Utterance)).contents.features
        words, phones = self.phones_of(utterance)
        database = library.val_cg_db(library.feat_val(features, b"cg_db"))
        self.database = database.contents
        smooth = library.mlpg(library.val_track(library.feat_val(features, b"param_track")), database)
        strengths = library.val_track(library.feat_val(features, b"str_track")).contents.array()
        frames = np.concatenate([smooth.contents.array()[:, : CEPSTRA + 1], strengths], 1)
        library.delete_track(smooth)
        library.delete_utterance(utterance)
        return Said(words, phones, frames.astype(np.float32))

    def filters(self) -> np.ndarray:
        """How loud each band of mixed excitation is at each of BINS frequencies."""
        held = self.database
        shapes = [np.ctypeslib.as_array(held.filters[i], (held.order,)) for i in range(held.bands)]
        return np.abs(np.fft.rfft(np.stack(shapes), 2 * (BINS - 1)))
