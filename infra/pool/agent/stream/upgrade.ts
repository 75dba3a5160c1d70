import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/** RFC 6455 §1.3: what a server shows that it has read the key with. */
const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const VERSION = '13';
const KEY = /^[+/0-9A-Za-z]{22}==$/;

/** The answer that makes a WebSocket of the connection; `undefined` when none was asked for (RFC 6455 §4.2.1). */
export function upgradeAnswer({ method, headers }: Pick<IncomingMessage, 'method' | 'headers'>): string | undefined {
  const key = headers['sec-websocket-key'];
  const asked = method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket';
  if (!asked || headers['sec-websocket-version'] !== VERSION || key === undefined || !KEY.test(key)) return undefined;
  const accept = createHash('sha1')
    .update(key + GUID)
    .digest('base64');
  const lines = ['HTTP/1.1 101 Switching Protocols', 'upgrade: websocket', 'connection: Upgrade'];
  return `${lines.join('\r\n')}\r\nsec-websocket-accept: ${accept}\r\n\r\n`;
}
