// Starts an agent and reports its address and attestation to the parent process, which may run on another architecture.
import { startAgent } from '../../infra/pool/agent/agent.ts';
import { readSettings } from '../../infra/pool/agent/settings/settings.ts';

const agent = await startAgent(readSettings(process.env), { write: () => {} });
process.send?.({ url: agent.url, attestation: agent.keys.current().token, arch: process.arch });
process.on('SIGTERM', async () => {
  await agent.stop();
  process.exit(0);
});
