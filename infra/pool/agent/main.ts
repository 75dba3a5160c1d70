import process from 'node:process';
import { startAgent } from './agent.ts';
import { readSettings } from './settings.ts';

// The decoder packages print a line for each damaged frame. The agent itself writes through its log only, so a broken
// recording must not fill anybody's disk.
console.error = () => {};
console.warn = () => {};

const agent = await startAgent(readSettings(process.env));
process.send?.({ ready: true, url: agent.url });

// The platform's one way to stop a pod; a second signal changes nothing.
process.on('SIGTERM', () => {
  agent.stop().then(
    () => process.exit(0),
    () => process.exit(1),
  );
});
