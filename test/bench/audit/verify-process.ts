// `node verify-process.ts FOLDER`: verifies a log on disk as the command line does one behind an address, and says how many
// seconds that took.
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import process from 'node:process';
import { fetchCheckpoint, type LogReader, Refused, walkLog } from '../../../infra/cli/audit/log.ts';
import { openVerifier } from '../../../shared/audit/note.ts';
import { readVerifierKey } from '../../../shared/audit/note-key.ts';

const [folder = ''] = process.argv.slice(2);
const key = readVerifierKey(readFileSync(path.join(folder, 'vkey'), 'utf8').trim());
if (!key) throw new Error('no key');
const reader: LogReader = {
  verifier: await openVerifier(key.name, key.publicKey),
  fetch: (name) =>
    readFile(path.join(folder, name)).catch(() => {
      throw new Refused(new Response('', { status: 404 }));
    }),
};
const began = performance.now();
const { checkpoint } = await fetchCheckpoint(reader);
let seen = 0;
await walkLog(reader, checkpoint, [], () => {
  seen += 1;
});
if (seen !== checkpoint.size) throw new Error(`${seen} entries of ${checkpoint.size}`);
console.log((performance.now() - began) / 1_000);
