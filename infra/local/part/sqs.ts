// The local SQS server, in this process, with the queues of the project and its data on disk.
import { type ListenOptions, Server } from 'node:net';
import process from 'node:process';
import { startFauxqs } from 'fauxqs';
import { deadQueue } from '../../../shared/jobs/job.ts';

// The server has no authentication and listens on every address of the machine. It has no setting for that
// (its `host` setting only goes into queue URLs, and breaks them), so this process, which has no other
// server, listens locally only.
type Listen = (this: Server, options: ListenOptions, ...rest: unknown[]) => Server;
const listen = Server.prototype.listen as Listen;
Server.prototype.listen = function (this: Server, options: ListenOptions, ...rest: unknown[]) {
  return listen.call(this, { ...options, host: '127.0.0.1' }, ...rest);
} as typeof Server.prototype.listen;

const region = process.env.REGION ?? '';
const zones: string[] = JSON.parse(process.env.ZONES ?? '[]');
const server = await startFauxqs({
  port: Number(process.env.PORT),
  logger: false,
  defaultRegion: region,
  dataDir: process.env.DATA ?? '',
  init: {
    queues: zones.map((zone) => ({ name: deadQueue('jobs', zone) })),
  },
});

process.on('SIGTERM', () => {
  void server.stop().finally(() => process.exit(0));
});
process.send?.('ready');
