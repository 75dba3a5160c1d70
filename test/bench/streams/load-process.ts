// Runs the load client and waits for what it measured.
import path from 'node:path';
import { startOn } from '../front/processes.ts';
import type { LoadMessage, LoadOrder, LoadReport } from './stream-load.ts';

/** `onBegin`: every stream is open and the first frame is about to be sent. */
export function runLoad(order: LoadOrder, core: string, onBegin: () => void): Promise<LoadReport> {
  const child = startOn(core, [process.execPath, path.join(import.meta.dirname, 'stream-load.ts')], { ipc: true });
  return new Promise((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`the load client ended with ${code}`)));
    child.on('message', (message: LoadMessage) => {
      if ('began' in message) return onBegin();
      resolve(message.report);
      child.disconnect();
    });
    child.send(order);
  });
}
