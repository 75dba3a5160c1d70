import { once } from 'node:events';
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { connect, type TLSSocket } from 'node:tls';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { AgentContext } from '../../../../infra/pool/agent/request/agent-context.ts';
import { type AgentServer, createAgentServer } from '../../../../infra/pool/agent/server/serve.ts';
import { readTlsPair, rotateTls, type TlsPair, type TlsRotation } from '../../../../infra/pool/agent/server/tls.ts';
import { makeCertificate } from '../../../fake/certificate.ts';

let folder: string;
let files: { certificateFile: string; keyFile: string };
let server: AgentServer;
let rotation: TlsRotation;
const lines: string[] = [];
let version = 0;

/** Replaces both files at once, as a mounted secret: their folder is a link that is swapped. */
function put(cert: string, key: string): void {
  const next = path.join(folder, `..${++version}`);
  mkdirSync(next);
  writeFileSync(path.join(next, 'tls.crt'), cert);
  writeFileSync(path.join(next, 'tls.key'), key);
  symlinkSync(next, path.join(folder, '..data_tmp'));
  renameSync(path.join(folder, '..data_tmp'), path.join(folder, '..data'));
}

function putPair(options: Parameters<typeof makeCertificate>[0]): void {
  const { cert, key } = makeCertificate(options);
  put(cert, key);
}

beforeEach(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'auricle-tls-'));
  files = { certificateFile: path.join(folder, '..data/tls.crt'), keyFile: path.join(folder, '..data/tls.key') };
  putPair({ name: 'first' });
  const used = readTlsPair(files, Date.now()) as TlsPair;
  server = createAgentServer({} as AgentContext, { ready: () => true, failed: () => [] }, { tls: used });
  if (!('setSecureContext' in server)) throw new Error('plain HTTP');
  lines.length = 0;
  const log = (event: string, fields = {}) => void lines.push([event, ...Object.values(fields)].join(' '));
  rotation = rotateTls(server, files, { used, now: Date.now, log });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterEach(() => {
  rotation.stop();
  server.closeAllConnections();
  server.close();
  rmSync(folder, { recursive: true });
});

const address = () => ({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', rejectUnauthorized: false });

/** Returns protocol and subject of a new connection. */
async function meet(options = {}): Promise<string> {
  const socket = connect({ ...address(), ...options });
  await once(socket, 'secureConnect');
  const met = `${socket.getProtocol()} ${socket.getPeerCertificate().subject.CN}`;
  socket.destroy();
  return met;
}

it('A21 serves HTTP by TLS 1.3 and refuses TLS 1.2', async () => {
  expect(await meet()).toBe('TLSv1.3 first');
  await expect(meet({ maxVersion: 'TLSv1.2' })).rejects.toThrow(/protocol version/);
});

it('A21 gives new connections a renewed pair and keeps open ones', async () => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false });
  const get = () =>
    new Promise<TLSSocket>((resolve, reject) => {
      const outgoing = request({ ...address(), path: '/healthz', agent }, (incoming) => {
        expect(incoming.statusCode).toBe(200);
        incoming.resume().once('end', () => resolve(incoming.socket as TLSSocket));
      });
      outgoing.once('error', reject).end();
    });
  const before = await get();
  putPair({ name: 'second' });
  rotation.poll();
  rotation.poll();
  expect(lines).toEqual(['tls-loaded']);
  expect(await meet()).toBe('TLSv1.3 second');
  expect(await get()).toBe(before);
  agent.destroy();
});

const other = makeCertificate();
it.each([
  ['that does not match', () => put(makeCertificate().cert, other.key), 'key: belongs to another certificate'],
  ['without a certificate', () => put('', other.key), 'certificate: is no certificate in PEM'],
  ['without a key', () => put(other.cert, 'x'), 'key: is no private key'],
  ['that is removed', () => rmSync(files.certificateFile), 'certificate: cannot be read (ENOENT)'],
  ['that has expired', () => putPair({ until: Date.now() - 60_000 }), 'certificate: has expired on'],
  ['that is not valid yet', () => putPair({ from: Date.now() + 60_000 }), 'certificate: is not valid before'],
])('A21 keeps the old pair when the new is one %s, and says so once', async (_, change, problem) => {
  change();
  rotation.poll();
  rotation.poll();
  expect(lines).toHaveLength(1);
  expect(lines[0]).toContain(`tls-refused ${problem}`);
  expect(await meet()).toBe('TLSv1.3 first');
  putPair({ name: 'second' });
  rotation.poll();
  expect(await meet()).toBe('TLSv1.3 second');
});
