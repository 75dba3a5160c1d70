"""Sound of a clip as a live client sends it."""

import wave

import numpy


def samples(file, rate, silence=1.0):
    """16-bit samples at `rate`, with silence behind them so that the last word has an end."""
    with wave.open(file) as clip:
        own = clip.getframerate()
        heard = numpy.frombuffer(clip.readframes(clip.getnframes()), dtype="<i2")
    if own != rate:
        at = numpy.arange(0, len(heard), own / rate)
        heard = numpy.interp(at, numpy.arange(len(heard)), heard).astype("<i2")
    return numpy.concatenate([heard, numpy.zeros(int(silence * rate), dtype="<i2")])


def pieces(file, rate, seconds=0.1):
    whole = samples(file, rate)
    step = int(rate * seconds)
    for at in range(0, len(whole), step):
        yield whole[at : at + step].tobytes()
