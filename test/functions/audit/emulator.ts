// The real storage emulator, in memory, and before it what it lacks: a lock on one container, and bad days.
import { spawn } from 'node:child_process';
import { createServer, type IncomingMessage, type ServerResponse, request as send } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { choosePorts } from '../../../infra/local/ports.ts';
import { ROOT } from '../../../infra/local/root.ts';

const ACCOUNT = 'devstoreaccount1';
/** The key that every copy of the emulator has. */
const KEY = 'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==';

/** Outcome of an HTTP request; the caller cannot distinguish the two failures. */
export type Fate = 'done' | 'failed' | 'failed but done';

export interface Emulator {
  /** Straight to the emulator, or through the gate before it. */
  readonly direct: string;
  readonly connection: string;
  /** Asked for every request that comes through the gate; `what` is its method and the path below the account. */
  decide: (what: string) => Fate;
  /** Requests that the lock has refused. */
  readonly refused: string[];
  stop(): Promise<void>;
}

const connectionTo = (port: number): string =>
  `DefaultEndpointsProtocol=http;AccountName=${ACCOUNT};AccountKey=${KEY};BlobEndpoint=http://127.0.0.1:${port}/${ACCOUNT};`;

/** In memory, or in that folder. */
export async function startEmulator(folder?: string): Promise<Emulator> {
  const [port = 0] = await choosePorts(1);
  const main = path.join(ROOT, 'node_modules/azurite/dist/src/blob/main.js');
  const kept = folder === undefined ? ['--inMemoryPersistence'] : ['--location', folder];
  const given = [...kept, '--silent', '--skipApiVersionCheck', '--disableTelemetry'];
  const child = spawn(process.execPath, [main, ...given, '--blobHost', '127.0.0.1', '--blobPort', String(port)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await new Promise<void>((settle, fail) => {
    child.stdout.on('data', (text: Buffer) => text.includes('successfully listens') && settle());
    child.once('exit', () => fail(new Error('the emulator did not start')));
  });
  const gate = new Gate(port);
  const connection = connectionTo(await gate.listen());
  const stop = async () => {
    await gate.close();
    child.removeAllListeners('exit');
    const ended = new Promise((settle) => child.once('exit', settle));
    child.kill();
    await ended;
  };
  return Object.assign(gate.rules, { direct: connectionTo(port), connection, stop });
}

/** Passes on what may pass. The container `audit-log` is as under a locked policy: create, and nothing else, ever. */
class Gate {
  readonly rules = { decide: (_what: string): Fate => 'done', refused: [] as string[] };
  readonly #port: number;
  readonly #server = createServer((asked, answer) => void this.#pass(asked, answer));
  /** Blobs of the locked container, those included that are on their way. */
  readonly #locked = new Set<string>();

  constructor(port: number) {
    this.#port = port;
  }

  async listen(): Promise<number> {
    await new Promise<void>((settle) => this.#server.listen(0, '127.0.0.1', settle));
    return (this.#server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((settle) => this.#server.close(settle));
  }

  async #pass(asked: IncomingMessage, answer: ServerResponse): Promise<void> {
    const body: Buffer[] = [];
    for await (const piece of asked) body.push(piece as Buffer);
    const place = decodeURIComponent((asked.url ?? '').split('?')[0] ?? '').slice(ACCOUNT.length + 2);
    const what = `${asked.method} ${place}`;
    const fate = this.rules.decide(what);
    // A refusal may be lost in transit, too.
    const locked = this.#isLocked(asked.method ?? '', place);
    if (fate === 'failed' || (locked && fate === 'failed but done')) return void asked.socket.destroy();
    if (locked) {
      this.rules.refused.push(what);
      answer.writeHead(409, { 'content-type': 'application/xml', 'x-ms-error-code': 'BlobImmutableDueToPolicy' });
      answer.end('<?xml version="1.0"?><Error><Code>BlobImmutableDueToPolicy</Code><Message>locked</Message></Error>');
      return;
    }
    const options = {
      port: this.#port,
      host: '127.0.0.1',
      method: asked.method,
      path: asked.url,
      headers: asked.headers,
    };
    const passed = send(options, (said) => {
      if (asked.method === 'PUT' && said.statusCode === 201) this.#locked.add(place);
      if (fate === 'failed but done') {
        said.resume().once('end', () => asked.socket.destroy());
        return;
      }
      answer.writeHead(said.statusCode ?? 500, said.headers);
      said.pipe(answer);
    });
    passed.once('error', () => asked.socket.destroy());
    passed.end(Buffer.concat(body));
  }

  #isLocked(method: string, place: string): boolean {
    if (!place.startsWith('audit-log/')) return false;
    return method === 'DELETE' || (method !== 'GET' && method !== 'HEAD' && this.#locked.has(place));
  }
}
