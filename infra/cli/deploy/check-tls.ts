// The TLS of an edge, as a client meets it.
import { connect } from 'node:tls';
import type { Step } from './step.ts';

const CONNECT_MS_MAX = 10_000;
const DAY_MS = 86_400_000;
/** Days before the end of a certificate from which the check fails: authorities renew a month before. */
const CERTIFICATE_DAYS_MIN = 7;

const step = (outcome: Step['outcome'], detail: string): Step => ({ step: 'edge over TLS', outcome, detail });

/** Connects once. Old versions of TLS are left to the zone's settings: an endpoint may offer more than it takes here. */
export async function checkTls(edge: string, now: number = Date.now()): Promise<Step> {
  const { protocol, hostname, port } = new URL(edge);
  if (protocol !== 'https:') return step('skip', `${edge} is plain HTTP`);
  const options = { host: hostname, port: Number(port || 443), servername: hostname, timeout: CONNECT_MS_MAX };
  return new Promise((settle) => {
    const socket = connect(options);
    const end = (found: Step) => {
      socket.destroy();
      settle(found);
    };
    socket.on('error', (error) => end(step('fail', error.message)));
    socket.on('timeout', () => end(step('fail', `no answer in ${CONNECT_MS_MAX / 1_000} s`)));
    socket.on('secureConnect', () => {
      const days = Math.floor((Date.parse(socket.getPeerCertificate().valid_to) - now) / DAY_MS);
      const version = socket.getProtocol() ?? 'unknown';
      const isNew = version === 'TLSv1.3' && days >= CERTIFICATE_DAYS_MIN;
      end(step(isNew ? 'ok' : 'fail', `${version}, the certificate ends in ${days} days`));
    });
  });
}
