// `helm test`: the agents are ready, and the edge transcribes a clip. Prints a line for each check; exits 1 at a failure.
import { readFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import process from 'node:process';

const { AGENTS = '', EDGE_URL = '', MODEL = '', EXPECTED = '', TOKEN_FILE = '', CLIP_FILE = '' } = process.env;
/** Longest wait for an answer, ms. */
const ANSWER_MS = 60_000;

/** The certificate is for the pod's host, not for its name in the cluster, so only the status is believed here. */
const statusOf = (url) =>
  new Promise((resolve, reject) => {
    const client = url.startsWith('https:') ? https : http;
    const request = client.get(url, { rejectUnauthorized: false, timeout: ANSWER_MS }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    request.on('timeout', () => request.destroy(new Error('no answer')));
    request.on('error', reject);
  });

async function checkAgent(url) {
  const status = await statusOf(`${url}/readyz`);
  if (status !== 200) throw new Error(`not ready: ${status}`);
}

async function checkClip() {
  const form = new FormData();
  form.set('model', MODEL);
  form.set('file', new Blob([readFileSync(CLIP_FILE)]), 'clip.opus');
  const response = await fetch(`${EDGE_URL}/v1/audio/transcriptions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${readFileSync(TOKEN_FILE, 'utf8').trim()}` },
    body: form,
    signal: AbortSignal.timeout(ANSWER_MS),
  });
  const body = await response.text();
  if (!response.ok) throw new Error(`${response.status} ${body.slice(0, 500)}`);
  const { text = '' } = JSON.parse(body);
  if (!text.toLowerCase().includes(EXPECTED.toLowerCase()) || text === '') {
    throw new Error(`transcribed as "${text}", which lacks "${EXPECTED}"`);
  }
}

const checks = AGENTS.split(',').map((url) => [url, () => checkAgent(url)]);
if (TOKEN_FILE) checks.push([`${EDGE_URL} transcribes with ${MODEL}`, checkClip]);
for (const [name, check] of checks) {
  const problem = await check().then(
    () => undefined,
    (error) => error.cause?.message ?? error.message,
  );
  if (problem !== undefined) process.exitCode = 1;
  console.log(problem === undefined ? `ok      ${name}` : `FAILED  ${name}: ${problem}`);
}
