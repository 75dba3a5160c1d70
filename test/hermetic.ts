// Loaded before every test file that runs in Node: tests talk to this machine only. A suite that needs the outside world
// is a script of its own and says so.
import net from 'node:net';

const local = /^(127\.\d+\.\d+\.\d+|::1|::ffff:127\.\d+\.\d+\.\d+|localhost)$/;

type Connect = (this: net.Socket, ...given: unknown[]) => net.Socket;
const prototype = net.Socket.prototype as unknown as { connect: Connect };
const connect = prototype.connect;

function connectHere(this: net.Socket, ...given: unknown[]): net.Socket {
  const host = hostOf(given);
  if (host !== undefined && !local.test(host)) throw new Error(`a test tried to reach ${host}: tests are hermetic`);
  return connect.apply(this, given);
}

// Files that share a process load this once each.
if (connect.name !== connectHere.name) prototype.connect = connectHere;

/** `connect(options)`, `connect(port, host)`, `connect(path)`, and the normalised array that Node passes to itself. */
function hostOf(given: unknown[]): string | undefined {
  const [first, second] = Array.isArray(given[0]) ? given[0] : given;
  if (typeof first === 'object' && first !== null && 'host' in first) return String(first.host ?? 'localhost');
  return typeof second === 'string' && Number(first) > 0 ? second : undefined;
}
