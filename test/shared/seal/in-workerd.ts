import { createOpener, createSealer } from '../../../shared/seal/records.ts';
import { generateSealKey, setupRecipient, setupSender } from '../../../shared/seal/setup.ts';
import { openStream, sealStream } from '../../../shared/seal/streams.ts';
import vectors from '../../vectors/seal/v1.json' with { type: 'json' };

const hex = (bytes: Uint8Array) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
const unhex = (text: string) => Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));

/** Answers with the sealed vectors, and the request's body after a seal and an open. */
export async function answer(request: Request): Promise<Response> {
  const records: string[] = [];
  for (const direction of ['request', 'answer'] as const) {
    const sealer = await createSealer(unhex(vectors[`${direction}BaseKey`]), 5);
    for (const { plaintext, final } of vectors.records.filter((record) => record.direction === direction))
      records.push(hex(await sealer.seal(unhex(plaintext), final)));
  }
  const { publicJwk, privateKey } = await generateSealKey();
  const sender = await setupSender(publicJwk, 5, 'attestation');
  const recipient = await setupRecipient(privateKey, sender.enc, 5, 'attestation');
  if (!recipient.ok) throw new Error('set-up refused');
  const sealer = await createSealer((await sender.keysFor('ticket')).request, 5);
  const opener = await createOpener((await recipient.value.keysFor('ticket')).request, 5);
  let bytes = 0;
  let refusals = 0;
  for await (const opened of openStream(sealStream(undefined, request.body ?? new Blob().stream(), sealer), opener)) {
    if (opened.ok) bytes += opened.value.plaintext.length;
    else refusals++;
  }
  const offCurve = await setupRecipient(privateKey, sender.enc.fill(1, 1), 5, 'attestation');
  return Response.json({ records, bytes, refusals, finished: opener.finished(), offCurve: offCurve.ok });
}
