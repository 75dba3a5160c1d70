// auricle transcribe --live FILE
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { joinWords } from '../../../shared/speech/words.ts';
import { type Answer, wrong } from '../answer.ts';
import type { Arguments } from '../options.ts';
import type { Screen } from '../progress.ts';
import { createFrames, FRAME_SECONDS, readLiveAudio, toRate } from './audio.ts';
import type { LiveUpdate } from './live.ts';
import { openLive, rateFor } from './open.ts';

/** Sends a recording as a microphone would, and shows the words as they come. */
export async function transcribeLive(given: Arguments, token: string, screen: Screen): Promise<Answer> {
  const [file = ''] = given.operands;
  const real = given.pace === 'realtime';
  const problem = problemOf(given);
  if (problem !== undefined) return wrong(problem);
  let bytes: Uint8Array;
  try {
    bytes = readFileSync(file);
  } catch {
    return wrong(`${file} cannot be read`);
  }
  const read = readLiveAudio(bytes);
  if ('problem' in read) return wrong(`${file} ${read.problem}`);
  const audio = toRate(read.audio, rateFor(read.audio));
  const segments: string[] = [];
  const onNews = (news: LiveUpdate) => {
    if (news.type !== 'words') return;
    if (news.final) segments.push(news.text);
    if (screen.isTTY) screen.write(`\r\u001b[2K${news.text}${news.final ? '\n' : ''}`);
  };
  const { edge, model, language } = given;
  const stream = await openLive({ edge, token, model, language, rate: audio.rate, onNews });
  if ('code' in stream) return failed(edge, stream);
  const frameAt = createFrames(audio);
  const frames = Math.ceil(audio.samples.length / audio.rate / FRAME_SECONDS);
  const start = performance.now();
  for (let index = 0; index < frames; index += 1) {
    const due = start + (index + 1) * FRAME_SECONDS * 1_000 - performance.now();
    if (real && due > 0) await sleep(due);
    await stream.send(frameAt(index));
  }
  const { code, message } = await stream.finish();
  if (code !== undefined) return failed(edge, { code, message });
  const text = joinWords(segments);
  // A terminal has shown the words already.
  return { exit: 0, text: screen.isTTY && !given.json ? '' : text, value: { text, segments } };
}

function problemOf({ pace, format }: Arguments): string | undefined {
  if (pace !== 'realtime' && pace !== 'max') return `--pace ${pace}: use realtime or max`;
  if (format === undefined || format === 'text') return undefined;
  return `--live prints words as they come: --format ${format} is for files, without --live`;
}

const failed = (edge: string, { code, message }: { code: string; message?: string | undefined }): Answer => {
  const why = [code, message].filter(Boolean).join(': ');
  const text = code === 'connection_lost' ? `${edge} cannot be reached` : `the stream was refused or lost: ${why}`;
  return { exit: 1, text, value: { error: { code, message: text } } };
};
