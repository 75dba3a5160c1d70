// Starts the upstream and waits until the edge routes to it and the real code has opened what the edge sealed.
import path from 'node:path';
import { type Identity, POOL, ZONE } from './identity.ts';
import { startOn } from './processes.ts';
import { MODEL, PATH, WORDS } from './words.ts';

const PROOF_BYTES = 300_000;
const PROOFS = 2;
/** Bound on the agent's hello, its first report, and the isolates' roster poll, ms. */
const JOIN_MS_MAX = 15_000;

export async function startUpstream(core: string) {
  const child = startOn(core, [process.execPath, path.join(import.meta.dirname, 'upstream.ts')], { ipc: true });
  let proved = 0;
  child.on('message', (message: { proved?: true }) => {
    if (message.proved) proved += 1;
  });
  const { port } = await new Promise<{ port: number }>((resolve) => child.once('message', resolve));

  async function join(edgeUrl: string, identity: Identity): Promise<void> {
    const { poolToken, attestationKeyFile, attestationIssuer } = identity;
    const boundary = 'XXBOUNDARYXX';
    const part = `--${boundary}\r\nContent-Disposition: form-data; name=`;
    const body = Buffer.concat([
      Buffer.from(`${part}"model"\r\n\r\n${MODEL}\r\n${part}"file"; filename="a.wav"\r\n\r\n`),
      Buffer.alloc(PROOF_BYTES, 1),
      Buffer.from(`\r\n--${boundary}--\r\n`),
    ]);
    const told = { edgeUrl, poolToken, attestationKeyFile, attestationIssuer, pool: POOL, zone: ZONE };
    child.send({ ...told, bodyBytes: body.length });
    const token = await identity.tenantToken('proof', 'strict');
    const headers = { authorization: `Bearer ${token}`, 'content-type': `multipart/form-data; boundary=${boundary}` };
    const until = Date.now() + JOIN_MS_MAX;
    let said = '';
    while (proved < PROOFS) {
      if (Date.now() > until) throw new Error(`the edge does not serve: ${said}`);
      const answer = await fetch(`${edgeUrl}${PATH}`, { method: 'POST', headers, body });
      said = `${answer.status} ${await answer.text()}`;
      if (answer.ok && !said.includes(WORDS)) throw new Error(`wrong words: ${said}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
  return { port, join };
}
