"""Speaks the clips of test/clips with voices and sentences that the network was not trained on.

    python3 clips.py --out ../../../../test/clips

needs espeak-ng, flite and ffmpeg. clips.json lists {file, text, voice} of
English, languages/clips.json {language, file, text, voice} of the others.
"""

import argparse
import json
import os
import subprocess
import wave

import voices
from languages import language

# (file, text, espeak-ng voice, words a minute, pitch, sampling rate, ffmpeg's name of the sample format)
CLIPS = [
    ("balance.wav", "i would like to check the balance on my account", "en-us+m7", 150, 45, 16000, "pcm_s16le"),
    (
        "meeting.wav",
        "the meeting with the doctor is on thursday at half past nine",
        "en+f5",
        145,
        55,
        16000,
        "pcm_s16le",
    ),
    ("number.wav", "my account number is four seven one nine two five", "en-us+linda", 140, 50, 16000, "pcm_s16le"),
    (
        "weather.wav",
        "it was cold this morning but tomorrow will be warm and sunny",
        "en-us-nyc+steph2",
        150,
        50,
        16000,
        "pcm_s16le",
    ),
    ("telephone.wav", "please hold the line while i find your booking", "en-us+quincy", 150, 45, 8000, "pcm_s16le"),
    ("studio.wav", "turn on the lights in the kitchen and play some music", "en-us+david", 150, 45, 48000, "pcm_f32le"),
]
# Of other languages: (language, file, text, voice, words a minute, pitch)
FOREIGN = [
    ("es", "balance-es.mp3", "buenos días quisiera consultar el saldo de mi cuenta", "es+m7", 150, 45),
    ("es", "cancel-es.wav", "quiero cancelar el vuelo", "es-419+f5", 165, 55),
    ("zh", "balance-zh.mp3", "请帮我查一下信用卡的余额谢谢", "cmn-latn-pinyin+m7", 150, 45),
    ("zh", "cancel-zh.wav", "请取消我的预约", "cmn-latn-pinyin+linda", 165, 50),
    ("yue", "balance-yue.mp3", "唔該我想查詢我嘅信用卡結餘", "sit/yue-Latn-jyutping+m7", 150, 45),
    ("yue", "cancel-yue.wav", "請取消聽日嘅預約", "sit/yue-Latn-jyutping+f5", 165, 55),
]
CODED = [
    ("balance.flac", ["-c:a", "flac"]),
    ("balance.mp3", ["-b:a", "64k"]),
    ("balance.opus", ["-c:a", "libopus", "-b:a", "32k"]),
]


def ffmpeg(source: str, target: str, settings: list[str]) -> None:
    quiet = [
        "ffmpeg",
        "-y",
        "-loglevel",
        "error",
        "-i",
        source,
        "-map_metadata",
        "-1",
        "-fflags",
        "+bitexact",
        "-flags:a",
        "+bitexact",
    ]
    subprocess.run([*quiet, *settings, target], check=True)


def speak(espeak: voices.Espeak, path: str, text: str, setting: tuple[str, int, int]) -> None:
    if not espeak.voice(*setting, 50):
        raise SystemExit(f"espeak-ng has no voice {setting[0]}")
    with wave.open(path, "wb") as file:
        file.setparams((1, 2, voices.RATE, 0, "NONE", ""))
        file.writeframes(espeak.speak(text).tobytes())


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--out", default="../../../../test/clips")
    out = options.parse_args().out
    os.makedirs(f"{out}/languages", exist_ok=True)
    espeak = voices.Espeak()
    listed = []
    plain = f"{out}/plain.wav"
    for name, text, voice, speed, pitch, rate, kind in CLIPS:
        speak(espeak, plain, text, (voice, speed, pitch))
        channels = "2" if kind == "pcm_f32le" else "1"
        ffmpeg(plain, f"{out}/{name}", ["-ar", str(rate), "-ac", channels, "-c:a", kind])
        listed.append({"file": name, "text": text, "voice": voice})
    foreign = []
    for name, file, text, voice, speed, pitch in FOREIGN:
        speak(espeak, plain, language(name).reading(text), (voice, speed, pitch))
        ffmpeg(plain, f"{out}/languages/{file}", ["-b:a", "64k"] if file.endswith(".mp3") else ["-c:a", "pcm_s16le"])
        foreign.append({"language": name, "file": file, "text": text, "voice": voice})
    os.remove(plain)
    for name, settings in CODED:
        ffmpeg(f"{out}/{CLIPS[0][0]}", f"{out}/{name}", settings)
        listed.append({"file": name, "text": CLIPS[0][1], "voice": CLIPS[0][2]})
    for name, rows in (("clips", listed), ("languages/clips", foreign)):
        with open(f"{out}/{name}.json", "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=2, ensure_ascii=False)
            file.write("\n")


if __name__ == "__main__":
    main()
