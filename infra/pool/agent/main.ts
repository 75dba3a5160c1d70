import process from 'node:process';
import { startAgent } from './agent.ts';
import { readSettings } from './settings.ts';

const agent = await startAgent(readSettings(process.env));
process.send?.({ ready: true, url: agent.url });

// The platform's one way to stop a pod; a second signal changes nothing.
process.on('SIGTERM', () => {
  agent.stop().then(
    () => process.exit(0),
    () => process.exit(1),
  );
});
