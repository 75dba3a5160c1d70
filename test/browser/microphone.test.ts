// The example page of edge/client on a site of its own, in a browser whose microphone plays a clip again and again.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { buildClient } from '../../infra/local/build-client.ts';
import { type Stack, startStack } from '../../infra/local/stack.ts';
import { clipLike } from '../stack/clips.ts';
import { liveSound } from '../stack/live-sound.ts';
import { wav } from '../wav.ts';
import { type Breakable, openBreakable } from './breakable.ts';
import { type Browser, openBrowser, type Page } from './open-browser.ts';

/** Limit of a test with a stack; these record for seven seconds. */
vi.setConfig({ testTimeout: 30_000 });
/** Silence before the clip, while the page connects the microphone. */
const LEAD_S = 2;
const PARTS = ['edge', 'release', 'engine-aks-westeurope', 'agent-aks-westeurope'];

const folder = mkdtempSync(path.join(os.tmpdir(), 'auricle-microphone-'));
const clip = clipLike('.wav');
let stack: Stack;
let network: Breakable;
let site: Server;
let browser: Browser;

beforeAll(async () => {
  const { samples, rate } = liveSound(clip);
  const sound = new Int16Array(LEAD_S * rate + samples.length);
  sound.set(samples, LEAD_S * rate);
  const microphone = path.join(folder, 'microphone.wav');
  writeFileSync(microphone, wav(sound, rate));
  const fake = ['--use-fake-device-for-media-stream', '--use-fake-ui-for-media-stream'];
  const parts = startStack({ port: 0, state: path.join(folder, 'state'), parts: PARTS });
  await buildClient(folder);
  site = await serveFolder();
  browser = await openBrowser([...fake, `--use-file-for-fake-audio-capture=${microphone}`]);
  stack = await parts;
  network = await openBreakable(Number(new URL(stack.url).port));
});
afterAll(async () => {
  await browser?.close();
  site?.close();
  network?.close();
  await stack?.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function serveFolder(): Promise<Server> {
  const server = createServer(({ url = '' }, response) => {
    response.setHeader('content-type', url.endsWith('.js') ? 'text/javascript' : 'text/html');
    response.end(readFileSync(path.join(folder, path.basename(url))));
  });
  await new Promise<void>((settle) => server.listen(0, '127.0.0.1', settle));
  return server;
}

/** Opens the page, fills its form, and keeps what `getUserMedia` returns. */
async function openPage(token: string): Promise<Page> {
  const page = await browser.open(`http://127.0.0.1:${(site.address() as AddressInfo).port}/example.html`);
  await page.evaluate(`{
    const values = ${JSON.stringify({ edge: network.url, model: 'reference-en', token })};
    for (const [name, value] of Object.entries(values)) document.forms[0][name].value = value;
    const open = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
    navigator.mediaDevices.getUserMedia = async (wanted) => (window.media = await open(wanted));
  }`);
  return page;
}

const press = (page: Page) => page.evaluate("document.querySelector('button').click()");
const text = (id: string) => `document.getElementById('${id}').textContent`;
const untilStatus = (page: Page, status: RegExp) => page.until(`${status}.test(${text('status')})`);
const tracks = (page: Page) => page.evaluate('window.media.getTracks().map(({ readyState }) => readyState)');

describe('U14 the example page in Chromium', () => {
  it('R1 shows words while they are spoken, and resumes after a drop', async () => {
    const page = await openPage(stack.token);
    await press(page);
    await page.until(`${text('interim')} !== ''`);
    network.setDown(true);
    await untilStatus(page, /Connection lost/);
    network.setDown(false);
    await untilStatus(page, /^Recording/);
    await page.until(`${text('finals')} !== ''`);
    expect(await tracks(page)).toEqual(['live']);
    await press(page);
    await untilStatus(page, /^\d+\.\d s of sound$/);
    const [first] = (await page.evaluate<string>(text('finals'))).split('\n');
    expect(first).toBe(clip.text);
    expect(await tracks(page)).toEqual(['ended']);
    expect(await page.evaluate("document.querySelector('button').textContent")).toBe('Record');
    expect(page.complaints.filter((one) => !one.includes('WebSocket'))).toEqual([]);
  });

  it('shows a refusal and releases the microphone', async () => {
    const page = await openPage('no-token');
    await press(page);
    await untilStatus(page, /token/i);
    await page.until('window.media.getTracks().every(({ readyState }) => readyState === "ended")');
  });
});

/** Records for up to 40 ms more each time, until the sound ends inside a chunk. Resolves to the bytes of its chunks. */
const recordUneven = `(async () => {
  const { openMicrophone } = await import('./auricle.js');
  for (;;) {
    const microphone = await openMicrophone();
    setTimeout(microphone.stop, 100 + 40 * Math.random());
    const lengths = [];
    for await (const { length } of microphone) lengths.push(length);
    if (lengths.at(-1) < lengths[0]) return lengths;
  }
})()`;

describe('U14 the microphone in Chromium', () => {
  it('delivers the samples behind the last whole chunk at stop', async () => {
    const page = await openPage(stack.token);
    const lengths = await page.evaluate<number[]>(recordUneven);
    expect(new Set(lengths.slice(0, -1))).toEqual(new Set([1_280]));
    expect((lengths.at(-1) ?? 0) % 2).toBe(0);
  });
});

/** Records one round of the sound in chunks of a quarter second, sends them live, then uploads them as a file. */
const recordTwice = ({ url, token }: { url: string; token: string }) => `(async () => {
  const media = await navigator.mediaDevices.getUserMedia({ audio: true });
  const recorder = new MediaRecorder(media, { mimeType: 'audio/webm;codecs=opus' });
  const socket = new WebSocket('${url.replace('http', 'ws')}/v1/listen?model=reference-en', ['token', '${token}']);
  const events = [];
  socket.onmessage = ({ data }) => events.push(JSON.parse(data));
  const closed = new Promise((resolve) => (socket.onclose = ({ code }) => resolve(code)));
  const chunks = [];
  socket.onopen = () => recorder.start(250);
  recorder.ondataavailable = ({ data }) => {
    socket.send(data);
    if (chunks.push(data) === 28) recorder.stop();
  };
  recorder.onstop = () => socket.send(JSON.stringify({ type: 'CloseStream' }));
  const code = await closed;
  for (const track of media.getTracks()) track.stop();
  const results = events.filter((one) => one.is_final).map((one) => one.channel.alternatives[0].transcript);
  const form = new FormData();
  form.append('file', new Blob(chunks, { type: recorder.mimeType }), 'speech.webm');
  form.append('model', 'reference-en');
  const headers = { authorization: 'Bearer ${token}' };
  const answer = await fetch('${url}/v1/audio/transcriptions', { method: 'POST', headers, body: form });
  return { code, live: results.join(' '), uploaded: (await answer.json()).text };
})()`;

describe('U14 MediaRecorder in Chromium', () => {
  it('U1 records WebM that /v1/listen takes live and /v1/audio/transcriptions whole', async () => {
    const page = await openPage(stack.token);
    const words = expect.stringContaining(clip.text);
    const results = await page.evaluate(recordTwice({ url: network.url, token: stack.token }));
    expect(results).toEqual({ code: 1000, live: words, uploaded: words });
  });
});
