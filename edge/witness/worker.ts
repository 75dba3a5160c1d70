// Witness of logs (C2SP tlog-witness): signs that a checkpoint extends all earlier ones it has seen of its
// log. Its cosignature shows that every client sees the same log. It is worth as much as it is independent:
// run it in another account than the log, better with another operator.
import { readCheckpoint } from '../../shared/audit/checkpoint.ts';
import { WITNESS_REQUEST_BYTES } from '../../shared/audit/limits.ts';
import { formatSignature, openNote, splitNote } from '../../shared/audit/note.ts';
import { readWitnessRequest, SIZE_TYPE } from '../../shared/audit/witness-request.ts';
import { ascii } from '../../shared/bytes.ts';
import { toHex } from '../../shared/hex.ts';
import { readBounded } from '../../shared/read-bounded.ts';
import { sha256 } from '../../shared/sha256.ts';
import { readWitnessSettings, type WitnessBindings, type WitnessSettings } from './settings.ts';

export { Seen } from './seen.ts';

const respond = (status: number, text = '', type = 'text/plain; charset=utf-8'): Response =>
  new Response(text, { status, headers: { 'content-type': type, 'cache-control': 'no-store' } });

/** Name of the object that holds the state of a log. */
const nameOf = (origin: string): string => toHex(sha256(ascii(origin)));

async function addCheckpoint(request: Request, env: WitnessBindings, settings: WitnessSettings): Promise<Response> {
  const body = await readBounded(request.body, WITNESS_REQUEST_BYTES);
  const query = body && readWitnessRequest(body);
  const parts = query && splitNote(query.checkpoint);
  const checkpoint = parts && readCheckpoint(parts.text);
  if (!query || !checkpoint) return respond(400, 'not as tlog-witness says\n');
  const { origin, size, root } = checkpoint;
  const verifiers = await settings.verifiersOf(origin);
  if (!verifiers) return respond(404, 'not a log that this witness looks at\n');
  const opened = await openNote(query.checkpoint, verifiers);
  if (!opened) return respond(403, 'not signed by the log\n');
  const seen = env.SEEN.getByName(nameOf(origin));
  const answer = await seen.advance(query.old, query.proof, { size, root });
  if (answer.status === 409) return respond(409, `${answer.size}\n`, SIZE_TYPE);
  if (answer.status !== 200) return respond(answer.status, 'not what the log was, grown\n');
  const line = await cosign(settings, opened.text);
  // Only verified signatures are published.
  await seen.publish(size, `${opened.text}\n${opened.good.map(formatSignature).join('')}${line}`);
  return respond(200, line);
}

async function cosign(settings: WitnessSettings, text: string): Promise<string> {
  const { name, keyId, sign } = settings.signer(() => Math.floor(Date.now() / 1_000));
  return formatSignature({ name, keyId, signature: await sign(new TextEncoder().encode(text)) });
}

async function answer(request: Request, env: WitnessBindings): Promise<Response> {
  const { pathname } = new URL(request.url);
  const settings = await readWitnessSettings(env);
  if (request.method === 'POST' && pathname === '/add-checkpoint') return addCheckpoint(request, env, settings);
  if (request.method !== 'GET') return respond(405);
  if (pathname === '/healthz') return respond(200, 'ok\n');
  const [, origin] = /^\/([0-9a-f]{64})\/checkpoint$/.exec(pathname) ?? [];
  const note = origin === undefined ? undefined : await env.SEEN.getByName(origin).newest();
  return note === undefined ? respond(404) : respond(200, note);
}

export default { fetch: answer };
