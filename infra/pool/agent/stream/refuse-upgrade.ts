import type { Duplex } from 'node:stream';
import { AGENT_FLUSH_MS } from '../settings/limits.ts';

/** Refuses an upgrade: plain HTTP, then the connection ends. */
export function refuseUpgrade(connection: Duplex, status: number, body: string): void {
  const head = [`HTTP/1.1 ${status} Refused`, 'content-type: application/json', `content-length: ${body.length}`];
  connection.end(`${head.join('\r\n')}\r\nconnection: close\r\n\r\n${body}`);
  setTimeout(() => connection.destroy(), AGENT_FLUSH_MS).unref();
}
