// A process that runs a packed functions app as the platform's host does, and tells its parent where. The folder and the
// entry are its arguments, its environment the app's settings.
import process from 'node:process';
import { startHost } from '../../../infra/local/functions-host/host.ts';

const [, , folder = '', entry = ''] = process.argv;
const host = await startHost({ folder, entry, port: 0, settings: process.env, log: () => {}, pollMs: 20 });
process.on('SIGTERM', () => {
  void host.stop().finally(() => process.exit(0));
});
process.send?.({ port: host.port, functions: host.functions });
